"""Policies that know no future, and the engine that runs them."""
