"""Studies: simulations, trainings and what was learned in them. Searches find it as they find other packages."""
