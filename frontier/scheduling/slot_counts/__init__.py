"""All slots as one integer program, alike ones counted together; see :class:`SlotCounts`."""
