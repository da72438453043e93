"""Links of the ``exact`` chain: the entry point ``ddlopt.exact``.

What is behind a link is loaded when an instance of its problem is answered.
"""

from ddlopt.models.problem import later
from ddlopt.solvers.chain import Link

LINKS = tuple(
    Link(path, later(f"ddlopt.frontier.{path.replace('/', '.')}.methods:link"))
    for path in ("deployment/plan", "deployment/partition")
)
