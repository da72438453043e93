"""Simulated annealing on links: of the traffic's hops, and of the congestion."""

from collections.abc import Mapping, Sequence

import numpy as np

from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.topology.balance.balance import Effort, Job
from ddlopt.solvers.topology.balance.path_kernels import Floats, Ints
from ddlopt.solvers.topology.link_exchange.moves import MOST_CHANGES, anneal_hops, hop_volume, move, undo
from ddlopt.solvers.topology.link_exchange.starts import LinkStart, closed_rings, spanning_groups

# Temperatures, between which the clock is looked at.
_STAGES = 20
_SWAPS = 0.3
"""Part of the moves that swap two servers: few other moves lead from one good place of a network to another."""


def anneal_volume(job: Job, start: LinkStart, traffic: Floats, moves: int, clock: Clock) -> tuple[Ints, int]:
    """Links with fewer hops for ``traffic`` (n, n); returns them and the number of moves tried.

    The temperature falls geometrically from ``start.hot`` to 0.003 of the mean change by a move.
    """
    if not traffic.any():
        return start.heads, 0
    instance = job.instance
    kind = instance.optics == "duplex", instance.parallel_links, instance.host_forwarding, _SWAPS
    heads = start.heads.copy()
    scale = _mean_change(heads, start.cycles, traffic, *kind)
    if scale == 0:
        return start.heads, 0
    best, least = heads.copy(), hop_volume(heads, traffic, instance.host_forwarding)
    each = max(1, moves // _STAGES)
    cooling = (0.003 / start.hot) ** (1 / (each * _STAGES))
    tried = 0
    for stage in range(_STAGES):
        if clock.expired:
            break
        temperature = start.hot * scale * cooling ** (stage * each)
        least = anneal_hops(heads, start.cycles, traffic, *kind, each, temperature, cooling, best, least)
        tried += each
    return best, tried


def _mean_change(
    heads: Ints, cycles: Ints, traffic: Floats, duplex: bool, parallel: bool, forwarding: bool, swaps: float
) -> float:
    """Mean size of the change of the hop volume over some random moves."""
    changes = np.empty((MOST_CHANGES, 3), np.int64)
    current = hop_volume(heads, traffic, forwarding)
    total, sampled = 0.0, 0
    for _ in range(60):
        count = move(heads, cycles, duplex, parallel, swaps, changes)
        if count != 0:
            total += abs(hop_volume(heads, traffic, forwarding) - current)
            sampled += 1
            undo(heads, changes, count)
    return total / max(1, sampled)


def anneal_congestion(
    job: Job,
    start: LinkStart,
    rings: Mapping[int, Sequence[tuple[int, ...]]],
    trials: int,
    fine: bool,
    enough_s: float,
    rng: np.random.Generator,
    clock: Clock,
) -> tuple[Ints, int]:
    """Links with less congestion as a few sweeps of balancing estimate it; returns them and the number of trials.

    The acceptance threshold is drawn before a trial, so that a trial whose bound exceeds it ends at once. Stops when
    the iteration time ``enough_s`` is met. The temperature falls geometrically from 0.03 to 0.003 of the congestion;
    where the annealing is ``fine``, for links that are good already, it is a quarter of that, and estimates take twice
    the sweeps.
    """
    instance = job.instance
    duplex, forwarding = instance.optics == "duplex", instance.host_forwarding
    sweeps, sharpest = (10, 100.0) if len(job.sizes) else (6, 60.0)
    if fine:
        sweeps, sharpest = 2 * sweeps, 4 * sharpest
    effort = Effort(sweeps, sharpest, kicks=0, columns=24, tolerance=1e-3)
    heads, changes = start.heads.copy(), np.empty((MOST_CHANGES, 3), np.int64)
    spanning = spanning_groups(instance) if len(start.cycles) else []

    def estimate(orders: Ints, give_up: float) -> float:
        if spanning:
            closed = closed_rings(heads, start.cycles, duplex)[: effort.columns]
            for group in spanning:
                orders[group * effort.columns : group * effort.columns + len(closed)] = closed
        found = job.estimate(heads, orders, effort, give_up)
        return float(found.congestion) if found.bound <= give_up else np.inf

    orders = job.orders(rings, effort.columns)
    current = least = estimate(orders, np.inf)
    best = heads.copy()
    on_rings = float((job.sizes * job.hop_bytes).sum())
    temperature, cooling = (0.008 if fine else 0.03) * current, 0.1 ** (1 / max(1, trials))
    tried = 0
    for _ in range(trials):
        if clock.expired or instance.iteration_time_s(least) <= enough_s:
            break
        temperature *= cooling
        count = move(heads, start.cycles, duplex, instance.parallel_links, _SWAPS, changes)
        if count == 0:
            continue
        tried += 1
        threshold = current - temperature * np.log(1 - rng.random())
        links = np.count_nonzero(heads >= 0)
        congestion, known = np.inf, orders
        if hop_volume(heads, job.traffic, forwarding) + on_rings <= threshold * links:
            known = orders.copy()
            congestion = estimate(known, threshold)
        if congestion <= threshold:
            current, orders = congestion, known
            if current < least:
                least, best = current, heads.copy()
        else:
            undo(heads, changes, count)
    return best, tried
