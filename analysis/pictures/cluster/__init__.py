"""Pictures of clusters; those of each problem are in a module of its own."""
