"""Methods for scheduling: one heuristic a file, named as its paper names it."""
