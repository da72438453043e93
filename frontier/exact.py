"""Links of the ``exact`` chain: the entry point ``ddlopt.exact``."""

LINKS: tuple[object, ...] = ()
