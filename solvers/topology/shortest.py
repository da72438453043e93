"""The common end of the baselines: every pair and every ring hop takes one random shortest path."""

import numpy as np

from ddlopt.models.topology import TopologyDesign
from ddlopt.models.topology.permutations import hops_of
from ddlopt.solvers.topology.allreduce_links import HopRouter, Rings
from ddlopt.solvers.topology.draft import Draft, require_paths, traffic_pairs
from ddlopt.solvers.topology.routing import shortest_paths


def shortest_path_design(draft: Draft, rings: Rings, seed: int, method: str) -> TopologyDesign:
    """Planes, rings and routes for the links of a draft.

    A group without rings gets those of the generators whose hops take the fewest links in all, at most d of them, with
    equal shares.

    Raises
    ------
    NotApplicableError
        If a pair has no path, or no link where nobody forwards.
    """
    instance = draft.instance
    planes = draft.colour(rings.direct_bytes(instance), seed)
    network = draft.network()
    pairs = traffic_pairs(instance)
    require_paths(instance, network, pairs, method)
    router = HopRouter(network, None, seed)
    for index, group in enumerate(instance.allreduce_groups):
        if index not in rings.generators:
            generators = router.shortest_generators(group.members, instance.degree)
            rings.give(index, group.members, generators, both_ways=False)
    hops = [hop for _, order, _ in rings.orders for hop in hops_of(order)]
    require_paths(instance, network, np.array(hops, dtype=np.int32).reshape(-1, 2), method)
    routes = dict(zip(map(tuple, pairs.tolist()), shortest_paths(network, pairs, seed), strict=True))
    return draft.design(planes, rings.orders, router.paths(hops), routes)
