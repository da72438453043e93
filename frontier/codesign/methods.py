"""What the chain behind ``exact`` takes from the frontier."""

from ddlopt.frontier.codesign.joint.joint import Joint
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.solvers.backends import backend
from ddlopt.solvers.contracts import Method


def link(_: CodesignInstance, solver: str) -> Method | None:
    """The decomposition, for every instance."""
    return Joint(backend=backend(solver))
