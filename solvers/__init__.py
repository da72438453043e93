"""How it is answered: exact back ends, heuristics, and the catalogue of methods."""
