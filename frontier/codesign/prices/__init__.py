"""Prices of what layers share, and the bound that they prove."""
