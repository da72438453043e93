"""Gangs of fixed width that run in one piece; see :class:`RigidGangs`."""
