"""TopologyFinder with its repeated matching replaced by the matching that it approximates."""

import math
from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo

from ddlopt.frontier.topology.formulations.concave_matching import ConcaveMatching
from ddlopt.models.errors import OptionError
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, relative_gap
from ddlopt.solvers.topology.draft import Draft
from ddlopt.solvers.topology.topoopt.topology_finder import TopologyFinder

TIE_BREAK = 1e-6
"""Relative noise on the traffic, so that ties are broken by the seed and not by server numbers."""


MATCHING_GAP = 1e-4
"""Relative gap at which the MILP may stop."""


@dataclass(frozen=True)
class ConcaveMatchingFinder(TopologyFinder, uses=("seed",)):
    """The paper's TopologyFinder, except that the links for model-parallel traffic are an exact b-matching.

    :class:`~ddlopt.frontier.topology.formulations.concave_matching.ConcaveMatching` with halving weights is solved once
    for the ports that rings leave at every server: for one-way optics, where links need not be two-way, as a linear
    program; for duplex optics as a MILP that leaves the planes to the colouring, or, for one port, as the single
    matching that it is. Ports that some servers have beyond that go to repeated matching, as does everything if the
    solver finds nothing in time. ``matching_gap`` in the details is what remained unproven when a time limit ended the
    MILP.

    Parameters
    ----------
    matching_time_s : float
        Time limit of the solver.
    """

    matching_time_s: float = 20.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant != "paper":
            raise OptionError(f"variant is {self.variant!r}, but only the paper's has this step; leave it at 'paper'")

    @property
    def name(self) -> str:
        """``concave-matching``."""
        return "concave-matching"

    def _lay_matchings(self, draft: Draft, rng: np.random.Generator) -> None:
        instance = draft.instance
        ports = int(min(draft.transmitters.min(), draft.receivers.min()))
        worth = instance.traffic_bytes * (1 + TIE_BREAK * rng.random(instance.traffic_bytes.shape))
        if not instance.parallel_links:
            for (i, j), count in draft.links.items():
                if count:
                    worth[i, j] = 0
                    worth[j, i] = 0 if draft.duplex else worth[j, i]
        one_matching = draft.duplex and ports == 1
        if ports and not one_matching and worth.any():
            model = pyo.ConcreteModel()
            model.matching = pyo.Block()
            formulation = ConcaveMatching(degree=ports, planes=False)
            # What links are worth, in place of bytes: nothing else of the copy is read, and parts may be tiny.
            formulation.build(model.matching, instance.model_copy(update={"traffic_bytes": worth / worth.max()}))
            model.objective = pyo.Objective(expr=model.matching.objective, sense=pyo.maximize)
            limits = Limits(time_s=self.matching_time_s, gap=MATCHING_GAP)
            outcome = Highs().solve(model, limits, seed=int(rng.integers(2**31)))
            if outcome.objective is not None:
                draft.notes["matching_gap"] = relative_gap(-outcome.objective, -(outcome.bound or math.inf)) or 0.0
                links = formulation.read_links(model.matching)
                draft.add(link for link, count in links.items() for _ in range(count))
        super()._lay_matchings(draft, rng)
