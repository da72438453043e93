"""Pictures of gossip answers; those of each problem are in a module of its own."""
