"""What a co-design instance does not tell apart."""
