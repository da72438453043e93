"""Training of the graph network of TAG's search: ``python -m ddlopt.analysis.graph_prior``."""
