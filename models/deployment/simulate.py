"""One training step under a deployment, event by event; TAG's rules."""
