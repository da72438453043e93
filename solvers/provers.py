"""Who writes certificates: the room of a problem, or what packages announce for it or for any formulation."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from ddlopt.certificates.linear.rows import ExactModel
from ddlopt.models import plugins
from ddlopt.models.catalogue import problem as problem_named

GROUP = "ddlopt.proofs"
Prove = Callable[[Any, Any, Fraction, Callable[[], bool]], Any]
"""``prove(instance, solution, target, expired)`` gives the best certificate that it found, or None."""


@dataclass(frozen=True)
class Prover:
    """What writes certificates for one problem, of the kind that its room in ``ddlopt.certificates`` checks.

    Parameters
    ----------
    problem : str
        Its path.
    prove : callable
        A certificate is checked whoever has written it.
    """

    problem: str
    prove: Prove


@dataclass(frozen=True)
class TreeProver:
    """What writes trees over the linear formulations of any problem.

    Parameters
    ----------
    prove : callable
        ``prove(model, claim, time_limit)`` gives a tree for a model of
        ``ddlopt.certificates.linear.exact_model``, which is checked whoever has written it.
    """

    prove: Callable[[ExactModel, Fraction, float | None], Any]


def tree_prover() -> Callable[[ExactModel, Fraction, float | None], Any] | None:
    """The first that is announced under ``ddlopt.proofs``; None where nothing is."""
    found = _announced(tuple(sys.path), plugins.hidden())
    return next((each.prove for each in found if isinstance(each, TreeProver)), None)


def prover(problem: str) -> Prove | None:
    """``prove`` of ``solvers/PATH/prove.py``, or what is announced under ``ddlopt.proofs``; None where nothing is."""
    room = problem_named(problem).module("solvers", "prove")
    if room is not None:
        own: Prove = room.prove
        return own
    found = _announced(tuple(sys.path), plugins.hidden())
    return next((each.prove for each in found if isinstance(each, Prover) and each.problem == problem), None)


@cache
def _announced(_: tuple[str, ...], hidden: bool) -> tuple[Prover | TreeProver, ...]:
    return tuple(each for point in plugins.announced(GROUP) for each in point.load())
