"""Branch and bound at prices of both lanes and of the error."""
