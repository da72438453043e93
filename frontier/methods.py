"""Methods with names of their own: the entry point ``ddlopt.methods``."""

from ddlopt.solvers.contracts import Entry

ENTRIES: tuple[Entry, ...] = ()
