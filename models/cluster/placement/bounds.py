r"""Bounds on pairs, crossings and gangs that need no search.

Of pairs and crossings there are two for each level, of which the larger counts:

* **by gangs**: a gang is in at least as many domains as the largest of them take to hold it;
* **by domains**: x hosts of a domain are used by at least :math:`f_d(x)` pairs. With m the largest gang,
  :math:`f_d(x) = \lceil x / m \rceil` pairs. Of crossings, gangs that are whole in the domain cost nothing, so with R
  what gangs add up to, :math:`f_d(x) = \min_{r \in R, r \le x} \lceil (x - r) / (m - 1) \rceil`. All gangs need T
  hosts: the least of :math:`\sum_d f_d(x_d)` over :math:`\sum_d x_d = T` is found domain by domain.
"""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ddlopt.models.cluster.placement.instance import ANYWHERE, Domain, Gang, PlacementInstance
from ddlopt.models.errors import InfeasibleError

_MOST_WORK = 100_000_000
"""Steps of the bound by domains, some tenths of a second; beyond, gangs alone are looked at."""
_NEVER = 1 << 40
"""Pairs of what cannot be, far beyond all others; sums of it still fit into 64 bits."""


def placement_bound(instance: PlacementInstance) -> float:
    """What pairs or crossings are at least, or gangs that are placed at most.

    Raises
    ------
    InfeasibleError
        If all gangs have to be placed, and there are fewer free hosts than they need.
    """
    return float(exact_placement_bound(instance))


def exact_placement_bound(instance: PlacementInstance) -> Fraction:
    """The same; it is a whole number anyway."""
    need = sum(gang.hosts for gang in instance.gangs)
    if instance.sense == "maximize":
        return Fraction(_placed_at_most(instance, need))
    if need > instance.free_hosts:
        raise InfeasibleError(
            f"'{instance.name}': gangs need {need} hosts, and {instance.free_hosts} are free; maximise max_gangs"
        )
    found = 0
    least = min(gang.weight for gang in instance.gangs)
    for level, price in enumerate(instance.level_prices):
        if price:
            of_gangs = sum(gang.weight * _cost(instance, fewest(instance, gang, level)) for gang in instance.gangs)
            found += price * max(of_gangs, least * _by_domains(instance, level, need))
    return Fraction(found)


def fewest(instance: PlacementInstance, gang: Gang, level: int) -> int:
    """Domains of a level that a gang is in at least, if it is placed.

    Raises
    ------
    InfeasibleError
        If the gang fits nowhere.
    """
    own = instance.level(gang)
    if gang.hosts > instance.largest(gang)[0]:
        raise InfeasibleError(f"'{instance.name}': gang '{gang.name}' fits nowhere")
    if own >= level:
        return 1
    groups: dict[int, list[int]] = {}
    for domain in instance.domains[level]:
        around = -1 if gang.within == ANYWHERE else instance.domain_of[own][domain.leaves[0]]
        groups.setdefault(around, []).append(domain.hosts)
    return min(count for sizes in groups.values() if (count := _taken(sizes, gang.hosts)) is not None)


def _taken(sizes: list[int], hosts: int) -> int | None:
    """How many of the largest it takes; None if all are too small."""
    for count, size in enumerate(sorted(sizes, reverse=True), start=1):
        hosts -= size
        if hosts <= 0:
            return count
    return None


def _cost(instance: PlacementInstance, domains: int) -> int:
    return 0 if instance.objective == "crossings" and domains == 1 else domains


def _placed_at_most(instance: PlacementInstance, need: int) -> int:
    """The fractional knapsack of gangs that fit by themselves, rounded down."""
    fitting = [gang for gang in instance.gangs if gang.hosts <= instance.largest(gang)[0]]
    if instance.objective == "fits":
        return int(len(fitting) == len(instance.gangs) and need <= instance.free_hosts)
    left, found = Fraction(instance.free_hosts), Fraction(0)
    for gang in sorted(fitting, key=lambda gang: Fraction(gang.hosts, gang.weight)):
        part = min(Fraction(1), left / gang.hosts)
        found += part * gang.weight
        left -= part * gang.hosts
    return int(found)


def _by_domains(instance: PlacementInstance, level: int, need: int) -> int:
    domains = [domain for domain in instance.domains[level] if domain.hosts]
    if sum(domain.hosts for domain in domains) * need > _MOST_WORK:
        return 0
    best = np.full(need + 1, _NEVER, dtype=np.int64)
    best[0] = 0
    costs: dict[int, npt.NDArray[np.int64]] = {}
    for domain in domains:
        if domain.hosts not in costs:
            costs[domain.hosts] = _costs(instance, domain)
        least = best.copy()
        for hosts in range(1, min(domain.hosts, need) + 1):
            np.minimum(least[hosts:], best[: need + 1 - hosts] + costs[domain.hosts][hosts], out=least[hosts:])
        best = least
    return int(best[need])


def _costs(instance: PlacementInstance, domain: Domain) -> npt.NDArray[np.int64]:
    """f_d(x) of every number of hosts."""
    largest = max(gang.hosts for gang in instance.gangs)
    hosts = np.arange(domain.hosts + 1, dtype=np.int64)
    if instance.objective == "pairs":
        return -(-hosts // largest)
    whole = np.zeros(domain.hosts + 1, dtype=bool)
    whole[0] = True
    for gang in instance.gangs:
        if gang.hosts <= domain.hosts:
            whole[gang.hosts :] |= whole[: -gang.hosts].copy()
    found = np.full(domain.hosts + 1, _NEVER, dtype=np.int64)
    for reached in np.flatnonzero(whole):
        found[reached:] = np.minimum(found[reached:], -(-(hosts[reached:] - reached) // max(1, largest - 1)))
    return found
