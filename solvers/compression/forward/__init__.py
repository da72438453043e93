"""Methods for gradients that the next forward pass waits for."""
