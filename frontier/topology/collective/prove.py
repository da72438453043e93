"""Writes witnesses of bounds: the sets of the bounds that cuts have, or prices of column generation."""

from collections.abc import Callable
from fractions import Fraction
from math import lcm

from ddlopt.certificates.topology.collective.certificate import CollectiveCertificate, proven_by
from ddlopt.frontier.topology.collective.columns import TreeColumns, rounded_prices
from ddlopt.models.topology.collective.bounds import sets
from ddlopt.models.topology.collective.instance import Arc, CollectiveInstance, CollectivePlan


def prove(
    instance: CollectiveInstance, solution: CollectivePlan, target: Fraction, expired: Callable[[], bool]
) -> CollectiveCertificate:
    """The certificate that proves ``target``, or as much as it can: by sets, and by prices where these prove less."""
    best: tuple[Fraction, list[list[int]], list[list[int]]] | None = None
    for parts in sets(instance):
        listed = [sorted(part) for part in parts]
        best = _better(best, (proven_by(instance, listed, []), listed, []))
    assert best is not None
    if best[0] < target and instance.collective == "all-to-all":
        equal = [[i, j, 1] for i, j in sorted(instance.bandwidth)]  # the bound of bytes times links
        best = _better(best, (proven_by(instance, [], equal, expired), [], equal))
    if best[0] < target and not expired():
        generation, shares, _, _ = TreeColumns().generated(instance, solution, expired)
        for prices in map(_whole, rounded_prices(generation, shares)):
            best = _better(best, (proven_by(instance, [], prices, expired), [], prices))
            if best[0] >= target or expired():
                break
    return CollectiveCertificate(instance.name, instance.digest, *best)


def _better(
    known: tuple[Fraction, list[list[int]], list[list[int]]] | None,
    found: tuple[Fraction, list[list[int]], list[list[int]]],
) -> tuple[Fraction, list[list[int]], list[list[int]]]:
    return found if known is None or found[0] > known[0] else known


def _whole(prices: dict[Arc, Fraction]) -> list[list[int]]:
    """Fractions as the file has them: whole numbers in the same proportions, links without a price left out."""
    below = lcm(*(each.denominator for each in prices.values()))
    return [[i, j, int(each * below)] for (i, j), each in sorted(prices.items()) if each]
