"""What several special algorithms are built on: column generation, and search by least bound."""
