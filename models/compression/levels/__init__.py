"""The problem ``compression/levels``."""
