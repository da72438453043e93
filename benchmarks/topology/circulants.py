"""Symmetric designs: the best circulants for all-to-all, and distances from one server."""

import tracemalloc

import networkx as nx
import numpy as np

from benchmarks.harness import Benchmark, Option, timed
from ddlopt.frontier.topology.blocks.bounds import congestion_bounds
from ddlopt.frontier.topology.formulations.circulant import CirculantDesign
from ddlopt.frontier.topology.symmetry.cayley import AbelianGroup
from ddlopt.models.topology import TopologyInstance
from ddlopt.models.topology.permutations import totient_perms
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import Exact

SIZES = ((8, 2), (12, 2), (12, 3), (12, 4), (16, 2), (16, 3), (16, 4))
LARGE = ((24, 3), (24, 4))
"""Servers, degree."""
LARGEST_ALL_PAIRS = 1024


def all_to_all(n: int, degree: int) -> TopologyInstance:
    return TopologyInstance(
        name=f"all-to-all-{n}", servers=n, degree=degree, link_bandwidth_bytes_per_s=1, traffic_bytes=1 - np.eye(n)
    )


def optima(asked):
    """All-to-all of unit demand, load of the busiest link: the best circulant, that of rings, bound for all designs."""
    limits = Limits(time_s=asked.time_limit, gap=1e-6)
    highs = Highs(options={"mip_feasibility_tolerance": 1e-9})
    for n, degree in (SIZES + (LARGE if asked.large else ()))[: asked.most]:
        instance = all_to_all(n, degree)
        best, rings = (
            Exact("circulant", "topology", CirculantDesign(ring_capable=only), highs).solve(instance, limits)
            for only in (False, True)
        )
        proven = "" if best.scope_gap <= 1e-6 else f" (≥ {best.scope_bound:.4f})"
        yield {
            "n": n, "d": degree, "any design ≥": f"{congestion_bounds(instance)['moore']:.4f}",
            "best circulant": f"{best.objective:.4f}{proven}",
            "generators": " ".join(str(j) for i, j, _ in best.solution.links if i == 0),
            "of rings only": f"{rings.objective:.4f}", "s": f"{best.runtime_s:.2f}",
        }  # fmt: skip


def distances(asked):
    """Ring generators, and distances of the circulant (1, x, x², x³), x = n^(1/4): breadth-first beside all pairs."""
    for n in asked.sizes:
        tracemalloc.start()
        perms, perms_took = timed(totient_perms, n)
        chord = sorted({round(n ** (i / 4)) for i in range(4)})
        hops, bfs = timed(AbelianGroup((n,)).distances, chord)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        row = {
            "n": n, "generators": len(perms), "totient s": perms_took.processor_s, "BFS s": bfs.processor_s,
            "diameter": hops.max(), "peak MB": peak / 1e6, "all pairs s": None, "ratio": None,
        }  # fmt: skip
        if n <= LARGEST_ALL_PAIRS:
            graph = nx.DiGraph((x, (x + g) % n) for x in range(n) for g in chord)
            far, pairs = timed(lambda g=graph: [max(d.values()) for _, d in nx.all_pairs_shortest_path_length(g)])
            assert max(far) == hops.max()
            row |= {"all pairs s": pairs.processor_s, "ratio": f"{pairs.processor_s / bfs.processor_s:.0f}"}
        yield row


BENCH = Benchmark(
    optima, distances,
    large=Option(False, "also prove optima for 24 servers"),
    time_limit=Option(120.0, "seconds for each proof", quick=2.0),
    most=Option(100, "how many sizes of the first table", quick=2),
    sizes=Option([64, 128, 256, 512, 1024, 2048, 4096], "servers of the second table", quick=[64, 2048]),
)  # fmt: skip
