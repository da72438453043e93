"""The dual bound of a timeline."""
