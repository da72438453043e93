"""Strategies on given links, rings and routes by a Metropolis walk, as FlexFlow searches them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ddlopt.models.codesign.tables import Tables, tables_of
from ddlopt.models.errors import NoSolutionError, OptionError
from ddlopt.solvers.codesign.fixed_routes import FixedRoutes
from ddlopt.solvers.codesign.topoopt.mcmc_kernels import (
    Fabric,
    Graph,
    Ints,
    Rows,
    Scratch,
    State,
    Tally,
    fill,
    seed_walk,
    walk,
)
from ddlopt.solvers.heuristic import Clock


@dataclass(frozen=True)
class Walked:
    """What a walk found.

    Parameters
    ----------
    choices : tuple of int
        The best it met.
    time_s : float
        Their iteration time on the given routes.
    proposed, accepted : int
        Proposals that change something, and those taken.
    seconds : float
    """

    choices: tuple[int, ...]
    time_s: float
    proposed: int
    accepted: int
    seconds: float


@dataclass(frozen=True)
class Metropolis:
    r"""A Metropolis walk over the strategies of all layers at fixed links, rings and routes.

    A proposal gives a random layer a random other strategy or, with probability ``propagation``, hands the strategy of
    a random layer on to neighbours: along a random edge (the heavier the likelier) the next layer gets the strategy of
    the same name, if it has one, and so on with probability 3/4. A proposal that is slower by :math:`\Delta`
    milliseconds is accepted with probability :math:`e^{-\alpha \Delta}`; one that does not fit into memory, or sends
    what has no way, never is. Every hundredth part of the budget (1 to 1000 proposals) the walk starts again from the
    best. The load of every link, the time and the memory of every server are kept up to date, so that a proposal costs
    a few vectors of the length of the arcs.

    Parameters
    ----------
    proposals : int
    alpha : float
        In 1/ms; 1 is the released code's default, of which TopoOpt's experiments with BERT depart (0.2).
    propagation : float

    References
    ----------
    Z. Jia, M. Zaharia and A. Aiken, "Beyond data and model parallelism for deep neural networks", MLSys 2019; the walk,
    its restarts and ``propagate`` as in the released FlexNet code (``FFModel::optimize``, ``FFModel::rewrite``), where
    parallel degrees are handed on instead of names.
    """

    proposals: int = 4000
    alpha: float = 1.0
    propagation: float = 0.25

    def __post_init__(self) -> None:
        if self.proposals < 1:
            raise OptionError(f"the budget must be at least 1 proposal, got {self.proposals}")
        if not self.alpha > 0:
            raise OptionError(f"alpha must be positive, got {self.alpha}")
        if not 0 <= self.propagation <= 1:
            raise OptionError(f"propagation is a probability, got {self.propagation}")

    def search(
        self,
        routes: FixedRoutes,
        choices: Sequence[int],
        seed: int,
        clock: Clock | None = None,
        watch: Callable[[float], None] | None = None,
    ) -> Walked:
        """Walk from a choice of strategies.

        Parameters
        ----------
        routes : FixedRoutes
        choices : sequence of int
        seed : int
        clock : Clock, optional
            The walk ends soon after it has expired.
        watch : callable, optional
            Told the time of a better choice, at most once between two restarts.

        Raises
        ------
        NoSolutionError
            If the first choice does not fit into memory, loses too much, or sends what has no way.
        """
        began = time.perf_counter()
        walker = Walker(routes)
        seed_walk(seed % 2**32)
        best = np.array(choices, dtype=np.int64)
        best_time = walker.restart(best)
        if not np.isfinite(best_time):
            raise NoSolutionError(f"'{routes.instance.name}': its links cannot serve the strategies to begin with")
        span = min(max(self.proposals // 100, 1), 1000)
        done = proposed = accepted = 0
        while done < self.proposals and not (clock is not None and clock.expired):
            steps = min(span, self.proposals - done)
            tally = walker.run(steps, self.alpha, self.propagation, best, best_time)
            if watch is not None and tally.best < best_time:
                watch(tally.best)
            best_time = tally.best
            done, proposed, accepted = done + steps, proposed + tally.proposed, accepted + tally.accepted
            walker.restart(best)
        found = tuple(best.tolist())
        return Walked(found, routes.time_s(found), proposed, accepted, time.perf_counter() - began)


class Walker:
    """Fixed routes as arrays, and the state of a walk over their instance's strategies."""

    def __init__(self, routes: FixedRoutes, arrays: tuple[Rows, Graph] | None = None) -> None:
        instance = routes.instance
        self.rows, self.graph = arrays or (rows_of(tables_of(instance)), graph_of(tables_of(instance)))
        blocked = np.concatenate(routes.blocked)
        loads = np.concatenate([part.T for part in routes.arc_loads])
        loads[blocked] = 0.0
        limit = instance.device.memory_bytes
        self.fabric = Fabric(
            np.ascontiguousarray(loads),
            blocked,
            instance.link_bandwidth_bytes_per_s,
            np.inf if limit is None else limit,
            instance.most_error,
            instance.overlap == "full",
        )
        layers, arcs, n = len(instance.layers), loads.shape[1], instance.servers
        self.state, self.trial = (
            State(np.zeros(layers, dtype=np.int64), np.zeros(arcs), np.zeros(n), np.zeros(n), np.zeros(1))
            for _ in range(2)
        )
        self.scratch = Scratch(
            np.zeros(len(loads)), np.zeros(len(loads), dtype=np.int64), np.zeros(layers), np.zeros(layers, dtype=bool)
        )

    def restart(self, choice: Ints) -> float:
        """Begin at a choice; returns its time, infinite where it cannot be run."""
        return float(fill(choice, self.rows, self.graph, self.fabric, self.state, self.scratch))

    def run(self, steps: int, alpha: float, propagation: float, best: Ints, best_time: float) -> Tally:
        """Walk on from the state; ``best`` is replaced where something better is met."""
        work = self.state, self.trial, self.scratch
        return Tally(*walk(steps, alpha, propagation, self.rows, self.graph, self.fabric, best, best_time, *work))


def rows_of(tables: Tables) -> Rows:
    """The strategies of all layers as flat arrays."""
    names: dict[str, int] = {}
    places: dict[tuple[int, ...], int] = {}
    name, place, sent = [], [], []
    for number, layer in enumerate(tables.instance.layers):
        for a, strategy in enumerate(layer.strategies):
            name.append(names.setdefault(strategy.name, len(names)))
            place.append(places.setdefault(tuple(tables.runs_on[number][a].tolist()), len(places)))
            sent.append(tables.own[number][a])
    return Rows(
        _starts(tables.sizes),
        np.array(name, dtype=np.int64),
        np.concatenate(tables.compute_s).astype(np.float64),
        np.concatenate(tables.memory_bytes).astype(np.float64),
        np.concatenate(tables.errors).astype(np.float64),
        np.array(place, dtype=np.int64),
        _starts([len(servers) for servers in places]),
        np.array([server for servers in places for server in servers], dtype=np.int64),
        _starts([len(each) for each in sent]),
        np.array([column for each in sent for column in each], dtype=np.int64),
        np.array([amount for each in sent for amount in each.values()], dtype=np.float64),
    )


def graph_of(tables: Tables) -> Graph:
    """The edges between layers as flat arrays."""
    sets = len(tables.groups_of)
    ends = np.array(tables.instance.edges, dtype=np.int64).reshape(-1, 2)
    moves = [np.where(table >= 0, table + sets, -1).ravel() for table in tables.moves]
    incident = [np.flatnonzero((ends == layer).any(axis=1)) for layer in range(len(tables.sizes))]
    return Graph(
        np.ascontiguousarray(ends[:, 0]),
        np.ascontiguousarray(ends[:, 1]),
        tables.edge_bytes.astype(np.float64),
        _starts([len(table) for table in moves]),
        np.concatenate([np.zeros(0, dtype=np.int64), *moves]).astype(np.int64),
        _starts([len(edges) for edges in incident]),
        np.concatenate(incident).astype(np.int64),
        np.array(tables.instance.order, dtype=np.int64),
    )


def _starts(sizes: Sequence[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
