"""Methods for the problem ``aggregation/slots``."""
