"""Methods for the cluster as a whole."""
