"""The problem ``compression/sfb``."""
