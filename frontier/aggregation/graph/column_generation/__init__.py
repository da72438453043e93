"""Column generation over the aggregation trees of jobs."""
