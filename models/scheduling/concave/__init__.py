"""Concave utilities and what linear models make of them."""
