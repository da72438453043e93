"""Figures that tables and charts of a store are made of."""
