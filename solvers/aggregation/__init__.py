"""Methods for in-network aggregation."""
