"""The problem ``gossip/matchings``: branch and bound over probabilities."""
