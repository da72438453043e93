"""Gangs that need hosts in a cluster of which a part is busy."""

from typing import Any

import numpy as np

from ddlopt.instances.options import at_least, one_of, part, positive
from ddlopt.models.cluster.placement.instance import ANYWHERE, PlacementInstance

_GOALS = ("pairs", "crossings", "max_gangs", "fits")


def placement(
    rng: np.random.Generator,
    *,
    pods: int = 0,
    blocks: int = 3,
    racks: int = 4,
    hosts: int = 8,
    busy: float = 0.3,
    asked: float = 0.9,
    largest: int = 16,
    sizes: str = "any",
    bound_to_block: float = 0.0,
    bound_to_rack: float = 0.0,
    objective: str = "pairs",
    prices: tuple[int, ...] = (),
) -> PlacementInstance:
    """Blocks of racks of hosts, each busy with a probability, and gangs that ask for a part of the free hosts.

    Parameters
    ----------
    pods : int
        Groups of this number of blocks each are a level around them; 0: there is none.
    blocks : int
        Of the cluster, or of a pod.
    racks : int
        Of a block.
    hosts : int
        Of a rack.
    busy : float
        Probability of a host to be busy.
    asked : float
        Part of the free hosts that gangs ask for, rounded down: more than 1 for ``max_gangs``.
    largest : int
        Hosts of a gang at most.
    sizes : {"any", "powers"}
        Gangs have 1 to ``largest`` hosts, or a power of two up to it.
    bound_to_block, bound_to_rack : float
        Part of the gangs that have to be within one block, or one rack, if they fit into the largest.
    objective : {"pairs", "crossings", "max_gangs", "fits"}
        Pairs of a gang and a leaf; links of ranks between leaves; how many gangs fit; or whether all do.
    prices : tuple of int
        Of each level.
    """
    at_least("pods", pods, 0)
    for option, value in (("blocks", blocks), ("racks", racks), ("hosts", hosts), ("largest", largest)):
        at_least(option, value, 1)
    for option, share in (("busy", busy), ("bound_to_block", bound_to_block), ("bound_to_rack", bound_to_rack)):
        part(option, share)
    positive("asked", asked)
    one_of("sizes", sizes, ("any", "powers"))
    one_of("objective", objective, _GOALS)
    free = [hosts - int(rng.binomial(hosts, busy)) for _ in range(blocks * racks)]
    left, gangs = int(asked * sum(free)), list[dict[str, Any]]()
    most = {
        "rack": max(free),
        "block": max(sum(free[block * racks : (block + 1) * racks]) for block in range(blocks)),
    }
    while left > 0 or not gangs:
        top = min(largest, max(1, left))
        size = int(rng.integers(1, top + 1)) if sizes == "any" else 1 << int(rng.integers(0, top.bit_length()))
        drawn, within = rng.random(), ANYWHERE
        if drawn < bound_to_rack:
            within = "rack"
        elif drawn < bound_to_rack + bound_to_block:
            within = "block"
        gangs.append(
            {"name": f"g{len(gangs)}", "hosts": size, "within": within if size <= most.get(within, 0) else ANYWHERE}
        )
        left -= size
    leaves = []
    for place, count in enumerate(free):
        block = place // racks
        inside = [f"b{block}"] if not pods else [f"p{block // pods}", f"b{block}"]
        leaves.append({"name": f"b{block}-r{place % racks}", "inside": inside, "hosts": count})
    return PlacementInstance.from_data(
        {
            "name": f"placement-{objective.replace('_', '-')}-b{blocks}-r{racks}-h{hosts}",
            "source": f"{sum(free)} of {blocks * racks * hosts} hosts are free",
            "levels": ["pod", "block", "rack"] if pods else ["block", "rack"],
            "leaves": leaves,
            "gangs": gangs,
            "objective": objective,
            "prices": prices,
        }
    )
