"""The problem ``deployment/plan``: branch and bound, and bounds by prices."""
