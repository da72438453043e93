"""Column generation over plans of jobs."""
