"""Pictures of deployment answers; those of each problem are in a module of its own."""
