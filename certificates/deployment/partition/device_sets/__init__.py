"""The sets of blocks that one device may have, and proofs by prices of blocks."""
