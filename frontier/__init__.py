"""What was made for the last percent: special exact algorithms and strong bounds, found as any plug-in is."""
