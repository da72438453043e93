"""Methods for topology design: one heuristic a file, named as its paper names it."""
