"""Symmetric designs: the best circulants for all-to-all, and what symmetry saves."""

import tracemalloc

import networkx as nx
import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from benchmarks.harness import Benchmark, Option, timed
from ddlopt.frontier.topology.blocks.bounds import congestion_bounds
from ddlopt.frontier.topology.circulant_enumeration import CirculantEnumeration, route
from ddlopt.frontier.topology.formulations.circulant import CirculantDesign
from ddlopt.frontier.topology.symmetry.cayley import AbelianGroup
from ddlopt.models.topology import TopologyInstance
from ddlopt.models.topology.permutations import totient_perms
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import Exact

SIZES = ((8, 2), (12, 2), (12, 3), (12, 4), (16, 2), (16, 3), (16, 4))
LARGE = ((24, 4), (32, 4), (64, 4), (128, 3), (128, 4))
"""Servers, degree."""
LARGEST_MODEL = 24
LARGEST_ALL_PAIRS = 1024


def all_to_all(n: int, degree: int) -> TopologyInstance:
    return TopologyInstance(
        name=f"all-to-all-{n}", servers=n, degree=degree, link_bandwidth_bytes_per_s=1, traffic_bytes=1 - np.eye(n)
    )


def optima(asked):
    """All-to-all of unit demand, load of the busiest link: formulation, enumeration, bound for all designs."""
    limits = Limits(time_s=asked.time_limit, gap=1e-6)
    highs = Highs(options={"mip_feasibility_tolerance": 1e-9})
    for n, degree in (SIZES + (LARGE if asked.large else ()))[: asked.most]:
        instance = all_to_all(n, degree)
        best = CirculantEnumeration().solve(instance, limits)
        rings = CirculantEnumeration(CirculantDesign(ring_capable=True)).solve(instance, limits)
        model = None
        if n <= LARGEST_MODEL:
            model = Exact("circulant", "topology", CirculantDesign(), highs).solve(instance, limits)
            assert abs(model.objective - best.objective) <= 1e-5 * best.objective
        proven = "" if best.scope_gap <= 1e-6 else f" (≥ {best.scope_bound:.4f})"
        yield {
            "n": n, "d": degree, "any design ≥": f"{congestion_bounds(instance)['moore']:.4f}",
            "best circulant": f"{best.objective:.4f}{proven}",
            "generators": " ".join(str(j) for i, j, _ in best.solution.links if i == 0),
            "of rings only": f"{rings.objective:.4f}", "MILP s": model and f"{model.runtime_s:.2f}",
            "enumeration s": f"{best.runtime_s:.2f}", "sets": best.details["generator_sets"],
        }  # fmt: skip


def full_program(instance: TopologyInstance, generators: tuple[int, ...]) -> float:
    """The multicommodity program over the circulant, one commodity a source."""
    n = instance.servers
    arcs = [(x, (x + g) % n) for x in range(n) for g in generators]
    columns = np.arange(len(arcs))
    tails, heads = np.array(arcs).T
    ones = np.ones(len(arcs))
    node_arc = sp.coo_array((np.r_[ones, -ones], (np.r_[tails, heads], np.r_[columns, columns])), shape=(n, len(arcs)))
    supply = np.diag(instance.traffic_bytes.sum(axis=1)) - instance.traffic_bytes
    balance = sp.hstack([sp.kron(sp.eye_array(n), node_arc), sp.csr_array((n * n, 1))])
    load = sp.hstack([sp.kron(np.ones((1, n)), sp.eye_array(len(arcs))), -np.ones((len(arcs), 1))])
    cost = np.zeros(n * len(arcs) + 1)
    cost[-1] = 1
    return linprog(cost, load, np.zeros(len(arcs)), balance, supply.ravel(), method="highs").fun


def collapse(asked):
    """Routing one circulant (1, 3, n/2 + 1): collapsed to one source beside all n of them written out."""
    for n in (8, 16, 32, 48) if asked.large else (8, 16, 32)[: asked.most]:
        generators, instance = (1, 3, n // 2 + 1), all_to_all(n, 3)
        (load, _, _), ours = timed(route, CirculantDesign().collapsed(instance), dict.fromkeys(generators, 1))
        full, stock = timed(full_program, instance, generators)
        assert abs(load - full) <= 1e-6 * full
        yield {
            "n": n, "load": f"{load:.4f}", "columns": 3 * n, "collapsed s": ours.processor_s,
            "columns, written out": 3 * n * n, "written out s": stock.processor_s,
            "ratio": f"{stock.processor_s / ours.processor_s:.0f}",
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
    optima, collapse, distances,
    large=Option(False, "also prove optima for up to 128 servers"),
    time_limit=Option(120.0, "seconds for each proof", quick=2.0),
    most=Option(100, "how many sizes of the first and second table", quick=2),
    sizes=Option([64, 128, 256, 512, 1024, 2048, 4096], "servers of the third table", quick=[64, 2048]),
)  # fmt: skip
