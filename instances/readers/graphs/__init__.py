"""Graphs of operators of neural networks."""
