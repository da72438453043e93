"""Methods for the problem ``compression/levels``."""
