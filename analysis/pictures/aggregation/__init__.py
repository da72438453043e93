"""Pictures of aggregation answers; those of each problem are in a module of its own."""
