"""Equal servers of one slot, counted by what is on them; see :class:`CountedSlot`."""
