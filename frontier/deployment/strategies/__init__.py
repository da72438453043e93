"""Strategies: messages and prices, junction trees, our search, and programs of what they leave."""
