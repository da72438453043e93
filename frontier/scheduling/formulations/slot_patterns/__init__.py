"""Slots as choices among all patterns of speeds, where speeds depend on places; see :class:`SlotPatterns`."""
