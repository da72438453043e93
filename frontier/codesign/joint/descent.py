"""Better plans on links that stay: strategies for the routes, routes for the strategies, until neither changes."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.job import job_of
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import InfeasibleError, SolverError
from ddlopt.models.topology import TopologyDesign, TopologyInstance
from ddlopt.solvers.codesign.fixed_routes import FixedRoutes
from ddlopt.solvers.codesign.half_rounds import best_on_routes
from ddlopt.solvers.codesign.quick_links import balanced
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.topology.balance.balance import Balance
from ddlopt.solvers.topology.link_exchange.starts import design_start

_BETTER = 1e-4
"""Relative improvement for which another round is worth while."""


@dataclass(frozen=True)
class Step:
    """Strategies with a design for them, or routes and shares that can be written down as one."""

    choices: tuple[int, ...]
    found: TopologyDesign | Balance | None
    busiest_bytes: float

    @property
    def design(self) -> TopologyDesign | None:
        """The design; None if there is nothing to send."""
        return self.found.design() if isinstance(self.found, Balance) else self.found


def descend(
    instance: CodesignInstance, begin: Step, clock: Clock, seed: int, limits: Limits, fine: bool, nodes: int
) -> Iterator[Step]:
    """Plans of falling iteration time on the links of ``begin``, which is not among them.

    Parameters
    ----------
    instance : CodesignInstance
    begin : Step
    clock : Clock
        Of the whole search.
    seed : int
    limits : Limits
        Of each integer program.
    fine : bool
        Whether routes are balanced accurately.
    nodes : int
        Of each integer program, at most.
    """
    at, time_s = begin, np.inf
    while not clock.expired and at.found is not None:
        design = at.design
        routes = FixedRoutes.of(instance, design, at.choices, seed=seed)
        try:
            with clock.lending_ctrl_c():
                choices, _ = best_on_routes(routes, at.choices, Clock(limits, None), seed, nodes=nodes)
        except SolverError:
            # Loads of a part in 10⁹ next to others: the program cannot be stated, and nothing is lost without it.
            return
        if choices == at.choices:
            return
        design = routes.design_for(choices)
        at = Step(choices, design, routes.congestion_bytes(choices))
        job = job_of(instance, choices)
        if job is not None and design is not None:
            other = _rebalanced(job, design, fine)
            if other is not None and other.congestion_bytes < at.busiest_bytes:
                at = Step(choices, other, other.congestion_bytes)
        yield at
        reached = instance.iteration_time_s(tables_of(instance).compute_of(choices), at.busiest_bytes)
        if reached > time_s * (1 - _BETTER):
            return
        time_s = reached


def _rebalanced(job: TopologyInstance, design: TopologyDesign, fine: bool) -> Balance | None:
    start = design_start(job, design, "given")
    if start is None:
        return None
    try:
        return balanced(job, start, fine)
    except InfeasibleError:
        return None
