"""Training of the graph network of TAG's search: ``python -m ddlopt.analysis.lab.plan_prior``."""
