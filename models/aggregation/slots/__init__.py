"""The problem ``aggregation/slots``."""
