"""Designs replayed by a simulator of flows or of packets: what an iteration takes beyond the model."""
