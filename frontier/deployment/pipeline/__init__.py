"""What was made for pipelines of graphs too wide for all of their ideals."""
