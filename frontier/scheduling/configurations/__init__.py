"""Column generation over slot patterns."""
