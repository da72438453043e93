"""Formulations of orders of micro-batches that ``exact`` does without."""
