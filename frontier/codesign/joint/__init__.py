"""The joint problem by decomposition: the two planes apart, each answering the other."""
