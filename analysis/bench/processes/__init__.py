"""Solves in processes of their own, with limits that hold whatever the method does."""
