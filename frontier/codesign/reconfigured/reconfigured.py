"""Optical switches that are set anew during the iteration: figures of flow-level simulations to compare a plan with."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.frontier.codesign.reconfigured.kernels import times_on_trees
from ddlopt.frontier.codesign.reconfigured.windows import Delivery, Floats, Ints, Windows, greedy_circuits
from ddlopt.frontier.topology.formulations.sip_ml import assignment_circuits, max_min_circuits
from ddlopt.models.codesign import CodesignInstance, job_of
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import InfeasibleError, NoSolutionError, OptionError
from ddlopt.models.topology import TopologyInstance
from ddlopt.solvers.certify import Gate
from ddlopt.solvers.codesign.data_parallel import data_parallel
from ddlopt.solvers.codesign.switches import best_on_switches, strategy_names, without_figure
from ddlopt.solvers.contracts import Limits, ProgressCallback, Result, compiled
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.topology.allreduce_links import Rings
from ddlopt.solvers.topology.draft import Draft
from ddlopt.solvers.topology.ocs_greedy import join_all
from ddlopt.solvers.topology.references import Switched

_STRATEGIES_SHARE = 0.3
"""Part of a time limit for the strategies; the rest is for sending what they make necessary."""


class _Reconfigured(ABC):
    """Circuits set anew, window by window, for the bytes that are left: a simulation of flows, not of packets.

    All bytes of an iteration wait from the start, as in the model of time of the other methods, and the circuits of the
    first window are set in advance. Every all-reduce is a ring in the order of the servers' numbers whose hops are
    demands like any other; it is not chosen anew. Two choices of strategies are tried, those that are best for the
    ideal switch and data parallel ones; the better one counts. It is a figure of a policy: no bound, and no proof that
    strategies chosen for it would not do better.
    """

    family: ClassVar[str] = "codesign"
    uses: ClassVar[frozenset[str]] = frozenset({"threads", "seed"})
    name: ClassVar[str]
    reconfiguration_s: float
    live_windows: float

    def __post_init__(self) -> None:
        if not self.reconfiguration_s > 0:
            raise OptionError(f"reconfiguration_s must be positive, got {self.reconfiguration_s}")
        if not self.live_windows > 0:
            raise OptionError(f"live_windows must be positive, got {self.live_windows}")

    @abstractmethod
    def deliver(self, job: TopologyInstance, seed: int, expired: Callable[[], bool]) -> Delivery:
        """Send all that a job has to send.

        Raises
        ------
        NoSolutionError
            If time is up before that.
        """

    def refuses(self, instance: CodesignInstance) -> str | None:
        """Every instance has this figure."""
        return None

    def solve(
        self,
        instance: CodesignInstance,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """The iteration time of the better choice of strategies, with status ``reference`` and no plan."""
        compile_s = compiled(self, instance)
        clock = Clock(limits, progress)
        try:
            with clock.heeding_ctrl_c():
                best = self.simulate(instance, _candidates(instance, limits, seed, clock), seed, clock)
        except (InfeasibleError, NoSolutionError) as problem:
            return without_figure(instance, self.name, problem, clock.elapsed_s, limits, seed)
        gate = Gate(instance, self.name, limits, seed, clock.elapsed_s, compile_s, interrupted=clock.interrupted)
        return gate.reference(
            best.pop("objective"),
            best,
            f"reference: a simulation; {self.reconfiguration_s:g} s to set circuits anew, an assumption",
        )

    def simulate(
        self, instance: CodesignInstance, candidates: list[tuple[int, ...]], seed: int, clock: Clock
    ) -> dict[str, Any]:
        """Figures of the best of several choices of strategies, or of those for which there is time; of one at least.

        Raises
        ------
        NoSolutionError
            If there is no time for the first.
        """
        found: list[dict[str, Any]] = []
        for choices in candidates:
            try:
                found.append(self._simulate(instance, choices, seed, clock))
            except NoSolutionError:
                if not found:
                    raise
        return min(found, key=lambda each: float(each["objective"])) | {"choices_tried": len(found)}

    def _simulate(
        self, instance: CodesignInstance, choices: tuple[int, ...], seed: int, clock: Clock
    ) -> dict[str, Any]:
        compute_s = tables_of(instance).compute_of(choices)
        job = job_of(instance, choices)
        sent = Delivery(0.0, 0) if job is None else self.deliver(job, seed, lambda: clock.expired)
        return {
            "objective": instance.iteration_time_s(compute_s, sent.seconds * instance.link_bandwidth_bytes_per_s),
            "compute_s": compute_s,
            "communication_s": sent.seconds,
            "settings_of_circuits": sent.settings,
            "strategies": strategy_names(instance, choices),
        }


@dataclass(frozen=True)
class OcsReconfig(_Reconfigured):
    """Optical circuit switches set anew by a greedy for the bytes that wait; servers forward.

    In every window the pair of servers with most bytes waiting, in the larger of its directions, gets a two-way circuit
    and counts half from then on, until ports run out; ports left over join servers without regard to demand, and parts
    that remain are connected (:class:`~ddlopt.solvers.topology.ocs_greedy.OcsGreedy` does so once). Everything takes a
    shortest path, those of one source a tree of them drawn at random; demands that share a circuit get parts of it in
    proportion to their bytes. Half of each all-reduce goes round its ring in either direction. Circuits are two-way and
    may be parallel whatever the instance says of its optics, which are those of another network.

    Parameters
    ----------
    reconfiguration_s : float
        Pause to set the circuits anew. The default, 10 ms, is an assumption.
    live_windows : float
        How many times as long circuits then stay, 4 in the released code.

    References
    ----------
    The OCS-reconfig baseline of TopoOpt (NSDI 2023): the greedy of ``DemandHeuristicNetworkOptimizer`` and the windows
    of ``DynFlatScheduler`` in https://github.com/Flasew/ffsim-opera, there under TCP and packet by packet.
    """

    reconfiguration_s: float = 10e-3
    live_windows: float = 4.0

    name: ClassVar[str] = "ocs-reconfig"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.frontier.codesign.reconfigured.kernels",)

    def deliver(self, job: TopologyInstance, seed: int, expired: Callable[[], bool]) -> Delivery:
        """Send all that a job has to send; see the class."""
        rng = np.random.default_rng(seed)
        demand = _demand(job, both_ways=True)
        network = TopologyInstance(
            name=job.name,
            servers=job.servers,
            degree=job.degree,
            link_bandwidth_bytes_per_s=job.link_bandwidth_bytes_per_s,
            optics="duplex",
            traffic_bytes=demand,
        )

        def serve(left: Floats) -> tuple[Floats, int]:
            circuits = _connected(network, np.maximum(left, left.T), rng)
            turns = rng.integers(0, job.servers, left.shape)
            return times_on_trees(circuits, turns, left / job.link_bandwidth_bytes_per_s), 1

        windows = Windows(self.live_windows * self.reconfiguration_s, self.reconfiguration_s)
        return windows.deliver(demand, serve, expired)


@dataclass(frozen=True)
class SipMl(_Reconfigured):
    """SiP-ML with optical switches: circuits by an assignment for the bytes that wait; nobody forwards.

    The first circuits are those that serve the slowest pair fastest, if every pair can have one; from then on each
    window has those of largest Σ bytes · circuits, which are d times one assignment
    (:class:`~ddlopt.frontier.topology.formulations.sip_ml.MaxMinCircuits` states both programs). A pair without circuit
    waits. Circuits are one-way and may be parallel whatever the instance says of its optics.

    Parameters
    ----------
    reconfiguration_s : float
        Pause to set the circuits anew. The default, 25 µs, is an assumption.
    live_windows : float
        How many times as long circuits then stay.
    held : float
        As there may be very many windows: circuits are kept, with all pauses, for as many as it takes to send this part
        of the largest demand left, at least for one. With 0 they are chosen anew for every window.

    References
    ----------
    M. Khani et al., "SiP-ML: high-bandwidth optical network interconnects for machine learning training", SIGCOMM 2021.
    Its ring variant is not here.
    """

    reconfiguration_s: float = 25e-6
    live_windows: float = 4.0
    held: float = 0.1

    name: ClassVar[str] = "sip-ml"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.held < 1:
            raise OptionError(f"held must be at least 0 and less than 1, got {self.held}")

    def deliver(self, job: TopologyInstance, seed: int, expired: Callable[[], bool]) -> Delivery:
        """Send all that a job has to send; see the class."""
        demand = _demand(job, both_ways=False)
        rate = job.link_bandwidth_bytes_per_s
        windows = Windows(self.live_windows * self.reconfiguration_s, self.reconfiguration_s)
        first = [found[0] for found in [max_min_circuits(demand, job.degree)] if found is not None]

        def serve(left: Floats) -> tuple[Floats, int]:
            circuits = first.pop() if first else assignment_circuits(left, job.degree)
            seconds = np.full(left.shape, np.inf)
            np.divide(left, rate * circuits, out=seconds, where=circuits > 0)
            longest_s = float(left.max()) / (rate * job.degree)
            return seconds, max(1, int(self.held * longest_s / windows.live_s))

        return windows.deliver(demand, serve, expired)


def _candidates(instance: CodesignInstance, limits: Limits, seed: int, clock: Clock) -> list[tuple[int, ...]]:
    """Strategies that are best for the ideal switch, and data parallel ones."""
    share = None if limits.time_s is None else _STRATEGIES_SHARE * limits.time_s
    with clock.lending_ctrl_c():
        best = best_on_switches(instance, Switched(), dataclasses.replace(limits, time_s=share), seed)
    try:
        return list(dict.fromkeys([best.choices, data_parallel(instance, clock)]))
    except NoSolutionError:
        return [best.choices]


def _demand(job: TopologyInstance, both_ways: bool) -> Floats:
    """(n, n) bytes by pair: traffic, and what the +1 ring of each group sends, and its reverse if ``both_ways``."""
    rings = Rings()
    for index, group in enumerate(job.allreduce_groups):
        rings.give(index, group.members, [1], both_ways)
    return rings.direct_bytes(job)


def _connected(network: TopologyInstance, demand: Floats, rng: np.random.Generator) -> Ints:
    """(n, n) two-way circuits by demand that use all ports and join all servers."""
    draft = Draft(network)
    circuits = greedy_circuits(demand, network.degree, rng)
    for i, j in np.argwhere(np.triu(circuits)).tolist():
        draft.add([(i, j)], int(circuits[i, j]))
    join_all(draft, demand, rng)
    for (i, j), count in draft.links.items():
        circuits[i, j] = circuits[j, i] = count
    return circuits
