"""The problem ``deployment/partition``: branch and price, branch and bound."""
