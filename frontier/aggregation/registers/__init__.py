"""The problem ``aggregation/registers``: enumeration of placements."""
