"""An interior-point method for eigenvalues of weighted graphs."""
