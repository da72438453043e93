"""Colours of what a device or a link does."""

FORWARD, BACKWARD, TRANSFER, COLLECTIVE = "#1f6fb4", "#7fb3dc", "#d95f02", "#3a9d5d"
