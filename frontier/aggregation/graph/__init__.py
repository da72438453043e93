"""The problem ``aggregation/graph``: column generation over trees."""
