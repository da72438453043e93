"""``python -m ddlopt`` is the command ``ddlopt``."""

from ddlopt.cli import main

main()
