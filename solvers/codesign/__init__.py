"""Methods for co-design problems."""
