"""Tables of the family's answers, a module a problem."""
