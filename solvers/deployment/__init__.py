"""Methods for deployment, partition and strategy selection."""
