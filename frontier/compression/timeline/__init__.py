"""The problem ``compression/timeline``: a search at prices of both lanes."""
