"""Kernels of trees at prices."""
