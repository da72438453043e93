"""Pictures of solutions, a module a problem; :func:`draw` finds the one for an instance."""
