"""How well: comparisons, tables and pictures of results."""
