"""Exact routing and ring shares on fixed links: a linear program, with rings priced into it."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy.sparse import block_diag, coo_array, csr_array, hstack, vstack

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
        m = len(self.arcs)
        step, one = np.arange(m), np.ones(m)
        entering, leaving = coo_array((one, (self.ends, step)), (n, m)), coo_array((one, (self.tails, step)), (n, m))
        incidence = csr_array(entering - leaving)
        blocks, demand = [], []
        for s in self.sources:
            others = np.flatnonzero(np.arange(n) != s)
            usable = np.ones(m) if job.instance.host_forwarding else (self.tails == s).astype(float)
            blocks.append(csr_array(incidence[others] * usable[None, :]))
            demand.append(job.traffic[s, others] / self.unit)
        self.balance = csr_array(block_diag(blocks)) if blocks else csr_array((0, 0))
        self.demand = np.concatenate(demand) if demand else np.zeros(0)
        self.loads = hstack([csr_array(np.eye(m))] * len(self.sources), format="csr") if blocks else csr_array((m, 0))

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
        flows = self.loads.shape[1]
        shares = np.zeros((groups, len(columns)))
        for place, (group, _, _) in enumerate(columns):
            shares[group, place] = 1.0
        ring_loads = csr_array(self.ring_loads(columns))
        over = hstack([self.loads, ring_loads, csr_array(-self.capacity[:, None])], format="csr")
        rows = len(self.demand)
        equal = vstack(
            [
                hstack([self.balance, csr_array((rows, len(columns) + 1))]),
                hstack([csr_array((groups, flows)), csr_array(shares), csr_array((groups, 1))]),
            ],
            format="csr",
        )
        cost = np.zeros(flows + len(columns) + 1)
        cost[-1] = 1.0
        answer = linprog(
            cost,
            A_ub=over,
            b_ub=np.zeros(m),
            A_eq=equal,
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
