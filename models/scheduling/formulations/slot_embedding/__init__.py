"""The best use of one slot: widths, places and rings; see :class:`SlotEmbedding`."""
