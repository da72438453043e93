"""Symmetric designs: the best circulants for all-to-all, and what symmetry saves.

Three tables: the optimum for each (n, d), by the formulation and by enumeration, beside the bound for all designs; the
routing program of one circulant, collapsed to one source beside all n of them written out; ring generators and
distances from one breadth-first search beside all-pairs shortest paths.
"""

import argparse
import time
import tracemalloc

import networkx as nx
import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table
from scipy.optimize import linprog

from ddlopt.models.topology import TopologyInstance
from ddlopt.models.topology.bounds import congestion_bounds
from ddlopt.models.topology.cayley import AbelianGroup
from ddlopt.models.topology.circulant import CirculantDesign
from ddlopt.models.topology.permutations import totient_perms
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import Exact
from ddlopt.solvers.topology.circulant_enumeration import CirculantEnumeration, route

SIZES = ((8, 2), (12, 2), (12, 3), (12, 4), (16, 2), (16, 3), (16, 4))
LARGE = ((24, 4), (32, 4), (64, 4), (128, 3), (128, 4))


def all_to_all(n, degree):
    return TopologyInstance(
        name=f"all-to-all-{n}", servers=n, degree=degree, link_bandwidth_bytes_per_s=1, traffic_bytes=1 - np.eye(n)
    )


def timed(work):
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def optima(console, sizes, time_limit_s):
    table = Table(title="all-to-all of unit demand: load of the busiest link (proven within the class)")
    for column in (
        "n",
        "d",
        "any design ≥",
        "best circulant",
        "generators",
        "of rings only",
        "MILP s",
        "enumeration s",
        "sets",
    ):
        table.add_column(column, justify="right")
    limits = Limits(time_s=time_limit_s, gap=1e-6)
    highs = Highs(options={"mip_feasibility_tolerance": 1e-9})
    for n, degree in sizes:
        instance = all_to_all(n, degree)
        best = CirculantEnumeration().solve(instance, limits)
        rings = CirculantEnumeration(CirculantDesign(ring_capable=True)).solve(instance, limits)
        milp = "-"
        if n <= 24:
            solved = Exact("circulant", "topology", CirculantDesign(), highs).solve(instance, limits)
            assert abs(solved.objective - best.objective) <= 1e-5 * best.objective
            milp = f"{solved.runtime_s:.2f}"
        proven = "" if best.scope_gap <= 1e-6 else f" (≥ {best.scope_bound:.4f})"
        table.add_row(
            str(n),
            str(degree),
            f"{congestion_bounds(instance)['moore']:.4f}",
            f"{best.objective:.4f}{proven}",
            " ".join(str(j) for i, j, _ in best.solution.links if i == 0),
            f"{rings.objective:.4f}",
            milp,
            f"{best.runtime_s:.2f}",
            str(best.details["generator_sets"]),
        )
    console.print(table)


def full_program(instance, generators):
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


def collapse(console, sizes):
    table = Table(title="routing one circulant (1, 3, n/2 + 1): collapsed beside written out")
    for column in ("n", "load", "columns", "collapsed s", "columns", "written out s", "ratio"):
        table.add_column(column, justify="right")
    for n in sizes:
        generators, instance = (1, 3, n // 2 + 1), all_to_all(n, 3)
        this = CirculantDesign().collapsed(instance)
        (load, _, _), ours = timed(lambda this=this, g=generators: route(this, dict.fromkeys(g, 1)))
        full, stock = timed(lambda i=instance, g=generators: full_program(i, g))
        assert abs(load - full) <= 1e-6 * full
        table.add_row(
            str(n), f"{load:.4f}", str(3 * n), f"{ours:.4f}", str(3 * n * n), f"{stock:.3f}", f"{stock / ours:.0f}"
        )
    console.print(table)


def distances(console, sizes):
    table = Table(title="ring generators, and distances of the circulant (1, x, x², x³), x = n^(1/4)")
    for column in ("n", "generators", "totient s", "BFS s", "diameter", "peak MB", "all pairs s", "ratio"):
        table.add_column(column, justify="right")
    for n in sizes:
        tracemalloc.start()
        perms, perms_s = timed(lambda n=n: totient_perms(n))
        chord = sorted({round(n ** (i / 4)) for i in range(4)})
        hops, bfs_s = timed(lambda n=n, c=chord: AbelianGroup((n,)).distances(c))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        pairs_s = None
        if n <= 1024:
            graph = nx.DiGraph((x, (x + g) % n) for x in range(n) for g in chord)
            longest, pairs_s = timed(
                lambda graph=graph: max(max(d.values()) for _, d in nx.all_pairs_shortest_path_length(graph))
            )
            assert longest == hops.max()
        stock = ("-", "-") if pairs_s is None else (f"{pairs_s:.2f}", f"{pairs_s / bfs_s:.0f}")
        table.add_row(
            str(n), str(len(perms)), f"{perms_s:.4f}", f"{bfs_s:.4f}", str(hops.max()), f"{peak / 1e6:.2f}", *stock
        )
    console.print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="also prove optima for up to 128 servers")
    parser.add_argument("--time-limit", type=float, default=120.0, help="seconds for each proof")
    arguments = parser.parse_args()
    screen = Console(width=130)
    optima(screen, SIZES + (LARGE if arguments.large else ()), arguments.time_limit)
    collapse(screen, (8, 16, 32, 48) if arguments.large else (8, 16, 32))
    distances(screen, (64, 128, 256, 512, 1024, 2048, 4096))
