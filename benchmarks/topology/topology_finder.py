"""TopoOpt's heuristics: time and peak memory as the cluster grows, and the paths beside networkx.

Three tables: TotientPerms, SelectPermutations and CoinChangeMod up to thousands of servers, with the distances of the
coin table beside breadth-first search by networkx; every heuristic on dense traffic (all-to-all and an all-reduce over
everybody), the check of the design included; k shortest paths beside networkx on a sample of pairs.
"""

import argparse
import itertools
import resource
import time

import networkx as nx
import numpy as np
from rich.console import Console
from rich.table import Table

from ddlopt.models.topology import AllReduceGroup, TopologyInstance
from ddlopt.models.topology.permutations import totient_perms
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.topology.coin_change import coin_change_mod
from ddlopt.solvers.topology.concave_matching import ConcaveMatchingFinder
from ddlopt.solvers.topology.expander import Expander
from ddlopt.solvers.topology.ocs_greedy import OcsGreedy
from ddlopt.solvers.topology.routing import Network, k_shortest_paths
from ddlopt.solvers.topology.select_permutations import select_permutations
from ddlopt.solvers.topology.topology_finder import TopologyFinder

METHODS = (TopologyFinder(), TopologyFinder("released"), ConcaveMatchingFinder(), OcsGreedy(), Expander())
REPEATS = 5


def timed(work, repeats=1):
    """What the work gives and the least seconds it took."""
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - started)
    return result, best


def peak_mb():
    """Largest resident size of this process so far; Linux counts in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def circulant(n, generators):
    return Network.of(n, {(v, (v + g) % n): 1 for v in range(n) for g in generators})


def dense(n, degree):
    """As many bytes all-to-all as in the all-reduce, so that the paper's degree split is even."""
    reduced = AllReduceGroup(members=tuple(range(n)), gradient_bytes=n / 2)
    return TopologyInstance(
        name=f"dense-{n}",
        servers=n,
        degree=degree,
        link_bandwidth_bytes_per_s=1,
        allreduce_groups=(reduced,),
        traffic_bytes=1 - np.eye(n),
    )


def coins(sizes, degree):
    table = Table(title=f"rings and their routes, d = {degree}")
    for column in (
        "n",
        "TotientPerms s",
        "Select s",
        "CoinChangeMod s",
        "all three s",
        "networkx BFS s",
        "ratio",
        "generators",
        "diameter",
        "peak MB",
    ):
        table.add_column(column, justify="right")
    for n in sizes:
        candidates, perms_s = timed(lambda n=n: totient_perms(n), REPEATS)
        chosen, select_s = timed(lambda n=n, c=candidates: select_permutations(c, n, degree), REPEATS)
        found, coin_s = timed(lambda n=n, g=chosen: coin_change_mod(n, g), REPEATS)
        graph = nx.DiGraph([(v, (v + g) % n) for v in range(n) for g in chosen])
        distances, stock_s = timed(lambda g=graph: nx.single_source_shortest_path_length(g, 0), REPEATS)
        assert max(distances.values()) == found.hops.max()
        table.add_row(
            str(n),
            f"{perms_s:.4f}",
            f"{select_s:.4f}",
            f"{coin_s:.4f}",
            f"{perms_s + select_s + coin_s:.4f}",
            f"{stock_s:.4f}",
            f"{stock_s / coin_s:.1f}",
            str(chosen),
            str(found.hops.max()),
            f"{peak_mb():.0f}",
        )
    return table


def heuristics(sizes, degree):
    table = Table(title=f"dense traffic, d = {degree}: bytes on the busiest link (seconds, check included)")
    for column in ("n", "bound", *(method.name for method in METHODS), "peak MB"):
        table.add_column(column, justify="right")
    for n in sizes:
        problem = dense(n, degree)
        results = [timed(lambda m=m, p=problem: m.solve(p, Limits())) for m in METHODS]
        cells = [f"{result.objective:.4g} ({seconds:.1f})" for result, seconds in results]
        table.add_row(str(n), f"{results[0][0].bound:.4g}", *cells, f"{peak_mb():.0f}")
    return table


def paths(sizes, degree, sample):
    table = Table(title=f"4 shortest paths of a pair on a circulant, d = {degree}")
    for column in ("n", "pairs", "ours, µs a pair", "networkx, µs a pair", "ratio"):
        table.add_column(column, justify="right")
    for n in sizes:
        generators = select_permutations(totient_perms(n), n, degree)
        network = circulant(n, generators)
        pairs = np.array(list(itertools.permutations(range(n), 2)), dtype=np.int32)
        sets, ours_s = timed(lambda net=network, p=pairs: k_shortest_paths(net, p, 4), REPEATS)
        graph = nx.DiGraph(list(zip(network.tails.tolist(), network.heads.tolist(), strict=True)))
        few = np.random.default_rng(0).choice(len(pairs), min(sample, len(pairs)), replace=False)

        def stock(graph=graph, few=few, pairs=pairs):
            return [list(itertools.islice(nx.shortest_simple_paths(graph, *pairs[q].tolist()), 4)) for q in few]

        theirs, theirs_s = timed(stock)
        for q, expected in zip(few, theirs, strict=True):
            assert [len(path) for path in sets.of_pair(q)] == [len(path) for path in expected]
        ours_us, theirs_us = ours_s / len(pairs) * 1e6, theirs_s / len(few) * 1e6
        table.add_row(str(n), str(len(pairs)), f"{ours_us:.1f}", f"{theirs_us:.0f}", f"{theirs_us / ours_us:.0f}")
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--degree", type=int, default=4)
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 32, 64, 128])
    parser.add_argument("--ring-sizes", type=int, nargs="+", default=[64, 256, 1024, 4096])
    parser.add_argument("--sample", type=int, default=60, help="pairs that networkx routes")
    options = parser.parse_args()
    console = Console(width=150)
    # Numba compiles, and imports settle, before anything is measured.
    for method in METHODS:
        method.solve(dense(8, 3), Limits())
    console.print(coins(options.ring_sizes, options.degree))
    console.print(heuristics(options.sizes, options.degree))
    console.print(paths(options.sizes, options.degree, options.sample))


if __name__ == "__main__":
    main()
