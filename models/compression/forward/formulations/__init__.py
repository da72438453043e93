"""Models of when parts of gradients are sent."""
