"""Schedules as TE-CCL writes them: for each demand the hops of each chunk, with the epoch of each.

TE-CCL numbers switches among the accelerators. Where one of its GPUs has no demand but forwards (as GPU 0 of its two
NDv2, which it takes for a switch), the accelerator of that place forwards here as well: the schedule is then a plan for
an instance in which it is a switch, and whose bytes are those of the others.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path as File
from typing import Any

from ddlopt.instances.readers.schedules import Ends, Schedule, Ways, plan_of
from ddlopt.models.errors import SolutionError
from ddlopt.models.reading import UnreadableError, parsed, read_text
from ddlopt.models.topology.collective.instance import CollectiveInstance, Link, Path

_DEMAND = re.compile(r"Demand at (\d{1,6}) for chunk (\d{1,6}) from (\d{1,6}) met by epoch \d+")
_HOP = re.compile(r"(\d{1,6})->(\d{1,6})(?: with volume ([0-9.e+-]{1,30}))? in epoch \d+(?: via switches ([0-9, ]+))?")


def read_te_ccl(path: str | File, instance: CollectiveInstance) -> Schedule:
    """The hops of an all-gather or all-to-all as trees, and the published time of the last arrival."""
    origin = str(path)
    try:
        data = parsed(read_text(path))
    except (UnreadableError, ValueError, RecursionError) as problem:
        raise SolutionError(f"{origin}: cannot be read as JSON: {problem}") from None
    demands = data.get("8-Chunk paths") if isinstance(data, dict) else None
    if not isinstance(demands, dict) or not demands:
        raise SolutionError(f"{origin}: is no schedule of TE-CCL: it has no '8-Chunk paths'")
    if instance.collective not in ("all-gather", "all-to-all"):
        known = "all-gather and all-to-all"
        raise SolutionError(f"{origin}: TE-CCL has {known}; '{instance.name}' is {instance.collective}")
    told = [(_told_demand(origin, demand), list(_hops(origin, ways))) for demand, ways in demands.items()]
    names = sorted({end for (target, _, source), _ in told for end in (target, source)})
    switches = {switch for _, ways in told for _, way in ways for _, through in way for switch in through}
    forwarding = sorted(({node for _, ways in told for _, way in ways for node, _ in way} | switches) - set(names))
    instance, number = _numbered(origin, instance, names, forwarding)
    trees = _gathered(instance, origin, told, number)
    details = {}
    finish = data.get("4-Collective_Finish_Time")
    if isinstance(finish, int | float) and not isinstance(finish, bool):
        details["published_s"] = float(finish)
    return Schedule(instance, plan_of(instance, trees), details)


_Way = list[tuple[int, tuple[int, ...]]]
"""Nodes one after the other, each with the switches before it."""
_Told = list[tuple[tuple[int, int, int], list[tuple[Fraction, _Way]]]]
"""Target, chunk and source of each demand, with shares and ways."""


def _told_demand(origin: str, text: str) -> tuple[int, int, int]:
    found = _DEMAND.fullmatch(text)
    if found is None:
        raise SolutionError(f"{origin}: cannot read the demand '{text[:80]}'")
    return int(found[1]), int(found[2]), int(found[3])


def _hops(origin: str, ways: Any) -> Iterator[tuple[Fraction, _Way]]:
    """Of each way its part of the chunk, and its nodes."""
    if not isinstance(ways, list) or not ways:
        raise SolutionError(f"{origin}: a demand has no hops")
    if all(isinstance(hop, str) for hop in ways):
        ways = [[[0, hop] for hop in ways]]
    for way in ways:
        hops = [hop[1] if isinstance(hop, list) and len(hop) == 2 else hop for hop in way]
        found = [_HOP.fullmatch(hop) if isinstance(hop, str) else None for hop in hops]
        ends = [] if None in found else [(int(hop[1]), int(hop[2])) for hop in found if hop]
        if not ends or any(a[1] != b[0] for a, b in pairwise(ends)):
            raise SolutionError(f"{origin}: hops are not one after the other: {str(hops)[:80]}")
        nodes: _Way = [(ends[0][0], ())]
        for hop in found:
            assert hop is not None
            nodes.append((int(hop[2]), tuple(int(each) for each in (hop[4] or "").split(",") if each.strip())))
        volumes = [Fraction(hop[3]) if hop and hop[3] else Fraction(1) for hop in found]
        yield min(volumes), nodes


def _numbered(
    origin: str, instance: CollectiveInstance, names: list[int], forwarding: list[int]
) -> tuple[CollectiveInstance, dict[int, int]]:
    """The instance that the schedule is for, and its numbers of TE-CCL's nodes."""
    count = instance.accelerators
    number = {name: place for place, name in enumerate(names)}
    if len(names) == count and len(forwarding) <= instance.switches:
        return instance, number | {name: count + place for place, name in enumerate(forwarding)}
    if sorted([*names, *forwarding]) == list(range(count)) and forwarding:
        # Their accelerators that only forward: the same network, in which these are switches.
        number |= {name: len(names) + place for place, name in enumerate(forwarding)}
        again = number | {node: node for node in range(count, instance.nodes)}
        links = tuple(
            Link(source=again[each.source], target=again[each.target], bytes_per_s=each.bytes_per_s)
            for each in instance.links
        )
        made = CollectiveInstance(
            name=f"{instance.name}-without-{'-'.join(map(str, forwarding))}",
            source=instance.source, accelerators=len(names), switches=instance.switches + len(forwarding), links=links,
            collective=instance.collective, collective_bytes=instance.collective_bytes * len(names) / count,
        )  # fmt: skip
        return made, number
    raise SolutionError(
        f"{origin}: is for {len(names)} accelerators and {len(forwarding)} switches, but '{instance.name}' has {count} "
        f"and {instance.switches}"
    )


def _gathered(instance: CollectiveInstance, origin: str, told: _Told, number: dict[int, int]) -> dict[Ends, Fraction]:
    ways, count = Ways(instance, origin), instance.accelerators
    chunks: dict[tuple[int, int], dict[int, list[tuple[Fraction, list[int]]]]] = defaultdict(dict)
    for (target, chunk, source), hops in told:
        chunks[number[source], chunk][number[target]] = [
            (share, [each for node, via in way for each in (*(number[s] for s in via), number[node])])
            for share, way in hops
        ]
    trees: dict[Ends, Fraction] = defaultdict(Fraction)
    for (source, chunk), targets in chunks.items():
        if instance.collective == "all-to-all":
            for target, shares in targets.items():
                parts = sum(1 for (s, _), each in chunks.items() if s == source and target in each)
                total = sum(share for share, _ in shares)
                for share, nodes in shares:
                    trees[source, (), (_along(ways, instance, nodes),)] += share / total / parts / count
            continue
        missing = set(range(count)) - set(targets) - {source}
        if missing:
            raise SolutionError(f"{origin}: chunk {chunk} of accelerator {source} never gets to {min(missing)}")
        parents: dict[int, list[int]] = {}
        for target, shares in targets.items():
            nodes = shares[0][1]
            last = max(place for place, node in enumerate(nodes[:-1]) if node < count)
            parents[target] = nodes[last:]
        own = sum(1 for s, _ in chunks if s == source)
        trees[source, (), tuple(_along(ways, instance, way) for way in parents.values())] += Fraction(1, count * own)
    return trees


def _along(ways: Ways, instance: CollectiveInstance, nodes: list[int]) -> Path:
    """The nodes as they are told where links join them, else the fastest way between accelerators."""
    if all(link in instance.bandwidth for link in pairwise(nodes)):
        return tuple(nodes)
    return ways.path([node for node in nodes if node < instance.accelerators])
