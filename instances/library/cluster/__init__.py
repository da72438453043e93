"""Cluster instances, one JSON file each; the best known solution of NAME.json is in NAME.best.json(.gz)."""
