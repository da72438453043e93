"""A search over orders of gangs."""
