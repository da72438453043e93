"""Plans of jobs at prices of slots, and the bounds that they give."""
