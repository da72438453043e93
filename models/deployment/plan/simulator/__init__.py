"""One training step under a deployment, by TAG's rules."""
