"""Links made for a job's all-reduce groups without a search: columns of closed rings, each kind in proportion."""

import itertools
from contextlib import suppress
from dataclasses import dataclass

from ddlopt.frontier.codesign.closed_columns import RingStart, starts_for
from ddlopt.frontier.codesign.joint.arrange import arranged, column_lengths
from ddlopt.frontier.topology.blocks.bounds import congestion_bounds
from ddlopt.frontier.topology.symmetric_rings.symmetric_rings import symmetric
from ddlopt.models.errors import InfeasibleError, NoSolutionError
from ddlopt.models.topology import TopologyInstance
from ddlopt.solvers.codesign.quick_links import POLISHED_SERVERS, balanced
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.topology.balance.balance import Balance
from ddlopt.solvers.topology.balance.exact import polish
from ddlopt.solvers.topology.link_exchange.starts import LinkStart


@dataclass(frozen=True)
class Effort:
    """How many links are made."""

    arranged: int = 3
    """Compositions, the best ones, whose rings are put in better orders: each takes an annealing and a balance."""
    rounds: int = 2
    """How often orders are improved, each time with the lengths of the balance before."""
    symmetric_trials: int = 50
    """Sets of generators that are judged for each composition that is tried afterwards."""


_EFFORT = Effort()


def constructed(
    instance: TopologyInstance, seed: int, clock: Clock, trials: int = 3, fine: bool = False
) -> tuple[Balance, int]:
    r"""Links, rings and routes for large jobs, in time O(n² log n) for every trial.

    An all-reduce is as fast as the ports allow if its gradient is shared out over rings that are closed in different
    columns of the table of links: each column is a permutation (two columns, with duplex optics, are the two matchings
    of an even ring), and all links of a ring carry the same. What kinds of columns there should be, and how many of
    each, is estimated for every composition by bytes times hops over ports; the ``trials`` best of them are built, with
    orders drawn at random, which makes distances short, and balanced (:func:`.balance`).

    Before that come links that look the same from every server, where the job does
    (:class:`~ddlopt.frontier.topology.symmetric_rings.symmetric_rings.SymmetricRings`): for jobs that only all-reduce
    they often attain the bound.

    Returns
    -------
    balance : Balance
        The best found.
    built : int
        How many compositions were balanced.

    Raises
    ------
    NoSolutionError
        If none of the links join everybody.
    """
    enough = max(congestion_bounds(instance).values()) * (1 + clock.gap / 2)
    cayley, _ = symmetric(instance, seed + trials, clock, _EFFORT.symmetric_trials * trials)
    if cayley is not None and cayley.congestion_bytes <= enough:
        return cayley, 0
    found: list[tuple[Balance, LinkStart]] = []
    for start in itertools.islice(starts_for(instance, seed), trials):
        if found and (clock.expired or min(each.congestion_bytes for each, _ in found) <= enough):
            break
        with suppress(InfeasibleError):
            found.append((balanced(instance, start, fine, polished=False), start))
    if not found and cayley is not None:
        return cayley, 0
    if not found:
        raise NoSolutionError(f"'{instance.name}': no links made of rings join all servers that communicate")
    built = len(found)
    found.sort(key=lambda each: each[0].congestion_bytes)
    best = found[0][0]
    for balance_of, start in found[: _EFFORT.arranged]:
        last = balance_of
        for _ in range(_EFFORT.rounds):
            if clock.expired or best.congestion_bytes <= enough or not isinstance(start, RingStart):
                break
            start = arranged(instance, start, column_lengths(start, last.length))
            last = balanced(instance, start, fine, polished=False)
            best = min(best, last, key=lambda each: each.congestion_bytes)
    polishable = fine and instance.servers <= POLISHED_SERVERS and best.congestion_bytes > enough
    best = polish(best) if polishable else best
    return min(best, cayley or best, key=lambda each: each.congestion_bytes), built
