"""Neural networks, layer by layer, and what a training step of theirs consists of."""
