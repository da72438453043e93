"""What writes certificates: the entry point ``ddlopt.proofs``."""

PROVERS: tuple[object, ...] = ()
