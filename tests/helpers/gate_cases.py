"""A solution at the gate, with what a test wants to say about it."""

from ddlopt.solvers.certify import Gate, MethodOutput

_OF_GATE = ("seed", "runtime_s", "compile_s", "trace", "interrupted")


def finish(instance, method, solution, *, limits, claimed=None, **said):
    """The result of a method that has this solution; what else is said belongs to the gate or to the output."""
    own = {name: said.pop(name) for name in _OF_GATE if name in said}
    return Gate(instance, method, limits, **own).certify(MethodOutput(solution, **said), claimed)
