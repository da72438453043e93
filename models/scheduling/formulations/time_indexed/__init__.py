"""The offline optimum over all slots; see :class:`TimeIndexed`."""
