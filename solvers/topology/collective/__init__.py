"""Methods for the problem ``topology/collective``."""
