"""The best weights, by an interior-point method that knows that edges have rank one."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from ddlopt.models.errors import NoSolutionError
from ddlopt.models.gossip.spectral.laplacians import Ints
from ddlopt.models.gossip.weights.automorphisms import automorphisms
from ddlopt.models.gossip.weights.instance import Goal, WeightsInstance
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits, best_bound, relative_gap
from ddlopt.solvers.gossip.spectral.interior_point import Iterate, solve
from ddlopt.solvers.gossip.weights.programs import WeightsProgram
from ddlopt.solvers.heuristic import CertifiedMethod, Clock
from ddlopt.solvers.names import spelled

_GAP = 1e-8
"""Relative gap at which it ends, or earlier where less was asked for."""


@dataclass(frozen=True)
class FastestWeights(CertifiedMethod, uses=("threads",)):
    r"""The best weights for a goal, with a certificate that is recomputed from the multipliers.

    Fastest distributed linear averaging (FDLA, goal ``averaging``), the fastest mixing Markov chain (FMMC, ``chain``)
    and process (FMMP, ``process``), the best probabilities of randomized gossip (``pairwise``).

    Edges that an automorphism of the graph exchanges have one weight: the average of a solution's images under all
    automorphisms is as good, as the objective is convex. The bound is that of
    :func:`~ddlopt.models.gossip.spectral.certificates.spectral_bound`.

    Parameters
    ----------
    goal : {"averaging", "chain", "process", "pairwise"}, optional
        That it solves; None: the instance's. Chains also answer instances of goal ``averaging``, as the best weights
        that are not negative.
    symmetry : bool
        Look for automorphisms.
    """

    goal: Goal | None = None
    symmetry: bool = True

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.gossip.spectral.kernels",)
    covers: ClassVar[type[Any]] = WeightsInstance

    @property
    def name(self) -> str:
        """``fastest-weights``, with its goal."""
        return spelled("fastest-weights", self, "goal")

    def refuses(self, instance: Any) -> str | None:
        """Other goals."""
        if self.goal not in (None, instance.goal, "chain" if instance.goal == "averaging" else None):
            return f"it is for goal '{self.goal}', and this instance has goal '{instance.goal}'"
        return None

    def find(self, instance: WeightsInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """Weights and certificate, or those of the last iterate when the time is up."""
        asked = instance
        if self.goal not in (None, instance.goal):
            asked = WeightsInstance(name=instance.name, network=instance.network, goal=self.goal)
        edges = len(asked.network.edges) * (2 if asked.goal == "pairwise" else 1)
        program = WeightsProgram(asked, edge_classes(asked) if self.symmetry else np.arange(edges))
        bounds: list[float | None] = []
        target = min(_GAP, limits.gap)

        def stop(at: Iterate) -> bool:
            bounds.append(program.bound(at))
            objective, bound = program.objective(at), best_bound(bounds, instance.sense)
            clock.report(objective, bound if asked is instance else None, lambda: program.weights(at))
            gap = relative_gap(objective, bound, instance.sense)
            return clock.expired or (gap is not None and gap <= target)

        # On small matrices threads of linear algebra only wait for each other.
        with threadpool_limits(limits.threads):
            at, rounds = solve(program.program(), stop, lambda: clock.expired)
        if not np.isfinite(at.y).all():
            raise NoSolutionError("the interior-point method broke down")
        details = {"rounds": rounds, "classes": program.classes}
        bound = best_bound(bounds, instance.sense)
        if asked is instance:
            return MethodOutput(program.weights(at), details, bound)
        return MethodOutput(program.weights(at), details, scope="Markov chain", scope_bound=bound)


def edge_classes(instance: WeightsInstance) -> Ints:
    """(m,) number of the class of each edge, or (2m,) of arcs: those that an automorphism exchanges are in one."""
    if len(set(instance.costs)) > 1:
        return np.arange(len(instance.network.edges))
    found = automorphisms(instance.network)
    return found.arc_orbits if instance.goal == "pairwise" else found.edge_orbits
