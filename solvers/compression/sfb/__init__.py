"""Methods for the problem ``compression/sfb``."""
