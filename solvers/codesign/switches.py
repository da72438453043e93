"""Iteration times on networks of packet switches, each with the strategies that are best for it."""

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.codesign import CodesignInstance, job_of
from ddlopt.models.codesign.bounds import refuse_too_large
from ddlopt.models.codesign.formulations.strategy_bound import StrategyBound
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.contracts import Evidence
from ddlopt.models.errors import InfeasibleError, NoSolutionError, OptionError
from ddlopt.models.tolerances import OBJECTIVE_TOL
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.certify import Gate, MethodOutput
from ddlopt.solvers.codesign.data_parallel import data_parallel
from ddlopt.solvers.codesign.half_rounds import Proposed, best_strategies
from ddlopt.solvers.contracts import (
    Limits,
    ProgressCallback,
    Result,
    Status,
    compiled,
    relative_gap,
)
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.topology import references
from ddlopt.solvers.topology.references import Switched


@dataclass(frozen=True)
class Chosen:
    """The best strategies found for a network of switches.

    Parameters
    ----------
    choices : tuple of int
        Index of each layer's strategy.
    time_s : float
        Of an iteration, from the job that they make.
    proposed : Proposed
        What the program said, with a bound on the time of all strategies.
    """

    choices: tuple[int, ...]
    time_s: float
    proposed: Proposed


def best_on_switches(
    instance: CodesignInstance,
    network: Switched,
    limits: Limits,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> Chosen:
    """Strategies of least iteration time on a network of switches, by integer programming from data parallelism.

    Raises
    ------
    InfeasibleError
        If no strategies fit into memory, by the word of HiGHS. Nothing else can be wanting: the congestion of the
        program has no upper limit, so that every choice that takes no more memory than a server has is one of its
        solutions, and every plan is such a choice.
    NoSolutionError
        If the time limit passes before any are found.
    """
    refuse_too_large(instance)
    formulation = StrategyBound("switch", network.links_per_port, network.racks, network.oversubscription)
    clock = Clock(limits, None)
    known: list[tuple[int, ...]] = []
    with suppress(NoSolutionError):
        known.append(data_parallel(instance, clock))
    proposed = best_strategies(instance, formulation, clock, seed, known[0] if known else None, watch=progress)
    if proposed.status is Status.INFEASIBLE:
        raise InfeasibleError(f"codesign instance '{instance.name}': no strategies fit into the memory of the servers")
    if proposed.choices is not None:
        known.append(proposed.choices)
    if not known:
        raise NoSolutionError(f"no strategies found for '{instance.name}': {proposed.outcome.message}")
    time_s, choices = min((time_on(network, instance, choices), choices) for choices in known)
    return Chosen(choices, time_s, proposed)


def time_on(network: Switched, instance: CodesignInstance, choices: tuple[int, ...]) -> float:
    """Time of an iteration with these strategies on a network."""
    busiest = network.busiest_bytes(job_of(instance, choices))
    return instance.iteration_time_s(tables_of(instance).compute_of(choices), busiest)


class _Reference(references.Reference):
    """The best strategies on a network of switches, as a figure to compare with."""

    family: ClassVar[str] = "codesign"
    uses: ClassVar[frozenset[str]] = frozenset({"threads", "seed"})

    def solve(
        self,
        instance: CodesignInstance,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """The iteration time with the best strategies, with status ``reference`` and no plan.

        ``scope_bound`` is the solver's: it meets the time if the strategies are proven to be the best for this network.
        """
        compile_s = compiled(self, instance)
        began = time.perf_counter()
        network = self.network(instance.servers)
        try:
            best = best_on_switches(instance, network, limits, seed, progress)
        except (InfeasibleError, NoSolutionError) as problem:
            return without_figure(instance, self.name, problem, time.perf_counter() - began, limits, seed)
        compute_s = tables_of(instance).compute_of(best.choices)
        proposed, outcome = best.proposed, best.proposed.outcome
        gap = relative_gap(best.time_s, proposed.bound_s)
        proven = gap is not None and gap <= max(limits.gap, OBJECTIVE_TOL)
        described = str(network)
        runtime_s = time.perf_counter() - began
        gate = Gate(instance, self.name, limits, seed, runtime_s, compile_s, proposed.trace, outcome.interrupted)
        return gate.reference(
            best.time_s,
            {
                "compute_s": compute_s,
                "communication_s": network.busiest_bytes(job_of(instance, best.choices))
                / instance.link_bandwidth_bytes_per_s,
                "strategies": strategy_names(instance, best.choices),
                **outcome.figures,
            },
            described if proven else f"{described}; strategies are not proven the best ({outcome.message})",
            proposed.bound_s if network == Switched() else None,
            "strategies on this network",
            proposed.bound_s,
            {"solver": outcome.solver or Highs().name, "solver_options": dict(Highs().options)},
        )


def strategy_names(instance: CodesignInstance, choices: tuple[int, ...]) -> tuple[str, ...]:
    """The name of each layer's strategy."""
    return tuple(layer.strategies[a].name for layer, a in zip(instance.layers, choices, strict=True))


def without_figure(
    instance: CodesignInstance, method: str, problem: Exception, runtime_s: float, limits: Limits, seed: int
) -> Result:
    """The result of a reference that has no figure to give."""
    gate = Gate(instance, method, limits, seed, runtime_s)
    output = MethodOutput(None, message=str(problem))
    return gate.without_solution(output, Evidence.SOLVER if isinstance(problem, InfeasibleError) else None)


@dataclass(frozen=True)
class IdealSwitch(_Reference, references.IdealSwitch):
    """A non-blocking switch; every server has one port of bandwidth d · B.

    No plan is faster, as the d links out of (into) a server carry at least what the port does: here, what the solver
    proves about the time is a bound for the instance too.
    """


@dataclass(frozen=True)
class FatTree(_Reference, references.FatTree):
    """A full-bisection fat-tree that costs as much as the optical network, with the best strategies for it.

    References
    ----------
    Thesis on TopoOpt, MIT, https://hdl.handle.net/1721.1/147321 (abstract).
    """


@dataclass(frozen=True)
class OversubscribedFatTree(_Reference):
    """A fat-tree with fewer uplinks: ports of d · B, racks whose uplinks together have 1/``oversubscription`` of that.

    Racks are consecutive servers, the last one possibly smaller. A pod of a k-ary fat-tree has k/2 racks of k/2
    servers, and its own uplinks are as much narrower; no more leaves a pod than leaves its racks, so racks decide. What
    goes on inside a rack is not slowed down, and a ring crosses the uplinks of a rack only once each way: all-reduces
    hardly notice unless racks are smaller than the oversubscription; all-to-alls do.

    Parameters
    ----------
    rack_servers : int or None
        None: k/2 of the smallest k-ary fat-tree, k even, which has k³/4 servers; 4 for 128 servers.
    oversubscription : float
        At least 1.
    links_per_port : float
        Bandwidth of a port relative to d · B. The default, 1, is no network of similar cost but one between the ideal
        switch and that.

    References
    ----------
    M. Al-Fares, A. Loukissas and A. Vahdat, "A scalable, commodity data center network architecture", SIGCOMM 2008
    (k-ary fat-trees). TopoOpt's simulator leaves out uplinks of the racks likewise, ``AggOverSubscribedFatTree`` of
    https://github.com/Flasew/ffsim-opera.
    """

    rack_servers: int | None = None
    oversubscription: float = 2.0
    links_per_port: float = 1.0

    name: ClassVar[str] = "oversubscribed-fat-tree"

    def __post_init__(self) -> None:
        if self.rack_servers is not None and self.rack_servers < 1:
            raise OptionError(f"rack_servers must be at least 1, got {self.rack_servers}")
        if not self.oversubscription >= 1:
            raise OptionError(f"oversubscription must be at least 1, got {self.oversubscription}")
        if not self.links_per_port > 0:
            raise OptionError(f"links_per_port must be positive, got {self.links_per_port}")

    def network(self, servers: int) -> Switched:
        """Racks of consecutive servers."""
        size = self.rack_servers or _rack_size(servers)
        racks = tuple(tuple(range(first, min(first + size, servers))) for first in range(0, servers, size))
        return Switched(self.links_per_port, racks, self.oversubscription)


def _rack_size(servers: int) -> int:
    """k/2 of the smallest even k with k³/4 >= servers."""
    half = 1
    while 2 * half**3 < servers:
        half += 1
    return half
