"""The simulator of a step, compiled: thousands of plans a second."""
