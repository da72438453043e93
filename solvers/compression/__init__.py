"""Methods for gradient compression: one heuristic a file, named as its paper names it."""
