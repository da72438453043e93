"""Prior probabilities of actions, for searches over plans."""
