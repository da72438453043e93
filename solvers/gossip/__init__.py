"""Methods for gossip: weights, matchings, periods and triggers."""
