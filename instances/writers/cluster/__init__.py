"""Answers of the family as tables and as files for schedulers."""
