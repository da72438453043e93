"""A heuristic of one's own: one method, and it stands beside the others, checked and with a certified gap."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ddlopt
from ddlopt.analysis import tables
from ddlopt.cli.shared.display import out_console
from ddlopt.models.topology import TopologyDesign, TopologyInstance
from ddlopt.models.topology.assembly import assemble
from ddlopt.solvers.heuristic import Clock, Heuristic


@dataclass(frozen=True)
class RandomChords(Heuristic):
    """One ring through all servers, and for every further interface a random permutation; shortest routes."""

    family = "topology"

    @property
    def name(self) -> str:
        return "random-chords"

    def refuses(self, instance: TopologyInstance) -> str | None:
        covered = instance.optics == "one_way" and instance.parallel_links and instance.host_forwarding
        return None if covered else "it lays one-way links that may be parallel, and forwards"

    def answer(
        self, instance: TopologyInstance, seed: int, clock: Clock, start: Any
    ) -> tuple[TopologyDesign, Mapping[str, Any]]:
        import networkx as nx
        import numpy as np

        n, rng = instance.servers, np.random.default_rng(seed)
        links: dict[tuple[int, int], int] = {}
        for _ in range(instance.degree):
            order = list(range(n)) if not links else rng.permutation(n).tolist()
            for hop in zip(order, order[1:] + order[:1], strict=True):
                links[hop] = links.get(hop, 0) + 1
        shortest = dict(nx.all_pairs_shortest_path(nx.DiGraph(list(links))))
        paths = {(i, j): [(tuple(shortest[i][j]), 1.0)] for i in range(n) for j in range(n) if i != j}
        rings = [(number, group.members, 1.0) for number, group in enumerate(instance.allreduce_groups)]
        return assemble(instance, links, rings, paths), {"links": sum(links.values())}


instances = [ddlopt.load(name) for name in ("topology/hybrid-n8-d3-s1", "topology/dlrm-n12-d4")]
results = ddlopt.compare(instances, [RandomChords(), "topology-finder"], seed=1)
out_console().print(tables.table(results, instances))
assert all(result.checked for result in results)
