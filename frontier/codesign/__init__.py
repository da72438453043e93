"""Co-design: the joint problem by decomposition, and what excludes choices of strategies."""
