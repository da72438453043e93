"""Regular digraphs with few hops, all of them, and what follows for all-to-all traffic."""
