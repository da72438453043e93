"""Optical switches that are set anew during the iteration."""
