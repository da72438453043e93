"""Exact routing and ring shares on fixed links: a linear program, with rings priced into it."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy.sparse import coo_array

from ddlopt.models.errors import SolverError
from ddlopt.models.tolerances import ROUNDING
from ddlopt.models.topology import Path
from ddlopt.solvers.topology.balance.balance import Balance, Job, hop_paths
from ddlopt.solvers.topology.balance.path_kernels import Floats, Ints, Net, all_trees, capacities
from ddlopt.solvers.topology.balance.ring_kernels import route_ring, shorten_ring

RingColumn = tuple[int, tuple[int, ...], tuple[Path, ...]]


def polish(found: Balance, rounds: int = 40, kicks: int = 100, done: Callable[[], bool] = lambda: False) -> Balance:
    """Exact optimum over all routes and the rings that column generation finds, starting from the rings of ``found``.

    Minimise z over the flow of each source on each arc and the shares of rings with fixed routes: flow is conserved,
    the shares of each group sum to one, and no arc carries more than z times its links. Each round prices, for every
    group, a short ring under the arc lengths that are the dual values of the last, until none is shorter than those in
    use, or ``done`` says that the time is up.

    Returns
    -------
    Balance
        Never worse than ``found``; ``length`` holds the dual values.

    Raises
    ------
    SolverError
        If HiGHS gives up.
    """
    problem = _Problem(found.job, found.heads)
    columns: list[RingColumn] = [(group, members, paths) for group, members, _, paths in found.rings]
    if not columns and not found.job.traffic.any():
        return found
    while True:
        congestion, flow, shares, length, prices = problem.solve(columns)
        fresh = problem.price(columns, length, prices, kicks) if rounds > 0 and not done() else []
        if not fresh:
            break
        columns += fresh
        rounds -= 1
    if congestion > found.congestion_bytes:
        return found
    rings = tuple((*column[:2], float(share), column[2]) for column, share in zip(columns, shares, strict=True))
    kept = tuple((group, members, share, paths) for group, members, share, paths in rings if share > ROUNDING)
    return Balance(found.job, found.heads, congestion, flow, kept, length)


class _Problem:
    """The rows of the linear program that do not change with the rings."""

    def __init__(self, job: Job, heads: Ints) -> None:
        self.job, self.heads = job, heads
        n, d = heads.shape
        self.net = Net(heads, capacities(heads), job.instance.host_forwarding)
        self.arcs = np.flatnonzero(self.net.capacity)
        self.capacity = self.net.capacity[self.arcs]
        self.tails, self.ends = self.arcs // d, heads.flat[self.arcs]
        self.number = {(int(t), int(h)): i for i, (t, h) in enumerate(zip(self.tails, self.ends, strict=True))}
        # Figures of different jobs differ by orders of magnitude, solver tolerances do not.
        self.unit = float(max(job.traffic.sum(axis=1).max(), job.hop_bytes.sum()))
        self.sources = np.flatnonzero(job.traffic.any(axis=1))
        m, sources = len(self.arcs), self.sources[:, None]
        usable = np.ones((len(sources), m), dtype=bool) if job.instance.host_forwarding else self.tails == sources
        # Flow of source k on arc a is column k m + a; what it loses at other nodes are n - 1 rows of each source.
        entries = []
        for nodes, sign in ((self.ends, 1.0), (self.tails, -1.0)):
            k, a = np.nonzero(usable & (nodes != sources))
            rows = k * (n - 1) + nodes[a] - (nodes[a] > self.sources[k])
            entries.append((np.full(len(k), sign), rows, k * m + a))
        self.balance = tuple(np.concatenate(each) for each in zip(*entries, strict=True))
        self.demand = job.traffic[self.sources][np.arange(n) != sources] / self.unit

    def ring_loads(self, columns: list[RingColumn]) -> Floats:
        """(arcs, columns) loads of the rings at share 1, in units."""
        loads = np.zeros((len(self.arcs), len(columns)))
        for place, (group, _, paths) in enumerate(columns):
            for path in paths:
                for hop in pairwise(path):
                    loads[self.number[hop], place] += self.job.hop_bytes[group] / self.unit
        return loads

    def solve(self, columns: list[RingColumn]) -> tuple[float, Floats, Floats, Floats, Floats]:
        """Congestion (bytes), flow (n, n * d), shares, arc lengths (n * d,), price of each group's cheapest ring."""
        from scipy.optimize import linprog

        (n, d), m, groups = self.heads.shape, len(self.arcs), len(self.job.sizes)
        flows, rows, count = m * len(self.sources), len(self.demand), len(columns)
        loads = self.ring_loads(columns)
        arc, ring = np.nonzero(loads)
        over = coo_array(
            (
                np.concatenate([np.ones(flows), loads[arc, ring], -self.capacity]),
                (
                    np.concatenate([np.tile(np.arange(m), len(self.sources)), arc, np.arange(m)]),
                    np.concatenate([np.arange(flows), flows + ring, np.full(m, flows + count)]),
                ),
            ),
            (m, flows + count + 1),
        )
        kept, row, flow_of = self.balance
        of_group = np.array([group for group, _, _ in columns], dtype=np.int64)
        equal = coo_array(
            (
                np.concatenate([kept, np.ones(count)]),
                (np.concatenate([row, rows + of_group]), np.concatenate([flow_of, flows + np.arange(count)])),
            ),
            (rows + groups, flows + count + 1),
        )
        cost = np.zeros(flows + len(columns) + 1)
        cost[-1] = 1.0
        answer = linprog(
            cost,
            A_ub=over.tocsr(),
            b_ub=np.zeros(m),
            A_eq=equal.tocsr(),
            b_eq=np.concatenate([self.demand, np.ones(groups)]),
            bounds=(0, None),
            method="highs",
        )
        if answer.status != 0:
            raise SolverError(f"'{self.job.instance.name}': routing on fixed links ended with: {answer.message}")
        flow = np.zeros((n, n * d))
        flow[np.ix_(self.sources, self.arcs)] = answer.x[:flows].reshape(len(self.sources), m) * self.unit
        length = np.full(n * d, np.inf)
        length[self.arcs] = np.maximum(0.0, -answer.ineqlin.marginals)
        prices = answer.eqlin.marginals[rows:]
        return float(answer.x[-1]) * self.unit, flow, answer.x[flows:-1], length, prices

    def price(self, columns: list[RingColumn], length: Floats, prices: Floats, kicks: int) -> list[RingColumn]:
        """Rings, one per group at most, that are shorter under ``length`` than those in use."""
        n, d = self.heads.shape
        dist, via = np.empty((n, n)), np.empty((n, n), np.int64)
        # A tiny length for idle arcs keeps hops from wandering over them for nothing.
        positive = length + 1e-9 * length[np.isfinite(length)].max()
        all_trees(self.net, positive, dist, via)
        cells, load = np.empty(n * n, np.int64), np.empty(n * d)
        fresh: list[RingColumn] = []
        for group, size in enumerate(self.job.sizes):
            known = [members for other, members, _ in columns if other == group]
            begin = min(known, key=lambda ring: dist[list(ring), [*ring[1:], ring[0]]].sum())
            reversing = self.job.instance.optics == "duplex"
            ring = np.array(begin, dtype=np.int64)
            shorten_ring(dist, self.job.members[group, :size], ring, reversing, kicks)
            used = route_ring(ring, self.job.hop_bytes[group] / self.unit, via, d, cells, load)
            # HiGHS holds duals to 1e-7: a ring has to gain more than their error.
            if used < 0 or load[self.arcs] @ length[self.arcs] >= prices[group] * (1 - 1e-7) - ROUNDING:
                continue
            members = tuple(int(v) for v in ring)
            fresh.append((group, members, hop_paths(self.heads, members, cells[:used])))
        return fresh
