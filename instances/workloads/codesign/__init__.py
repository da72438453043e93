"""Layers of training jobs under each parallelization strategy."""
