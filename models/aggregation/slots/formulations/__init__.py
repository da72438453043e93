"""Formulations of the problem ``aggregation/slots``."""
