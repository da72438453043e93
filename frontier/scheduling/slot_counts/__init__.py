"""All slots as one integer program, interchangeable ones counted together; see :class:`SlotCounts`."""
