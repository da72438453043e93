"""TopoOpt's heuristics: time and peak memory as the cluster grows, and the paths beside networkx."""

import itertools

import networkx as nx
import numpy as np

from benchmarks.harness import Benchmark, Option, clocked, least, paired, peak_bytes, timed
from ddlopt.models.topology import AllReduceGroup, TopologyInstance
from ddlopt.models.topology.permutations import totient_perms
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.topology.routing import Network, k_shortest_paths
from ddlopt.solvers.topology.topoopt.coin_change import coin_change_mod
from ddlopt.solvers.topology.topoopt.select_permutations import select_permutations

METHODS = ("topology-finder", "topology-finder:variant=released", "ocs-greedy", "expander")


def peak_mb() -> str:
    """Of this process so far."""
    return f"{peak_bytes() / 2**20:.0f}"


def dense(n: int, degree: int) -> TopologyInstance:
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


def rings(asked):
    """TotientPerms, SelectPermutations and CoinChangeMod, whose distances are beside breadth-first search."""
    coin_change_mod(8, [1, 3])
    for n in asked.ring_sizes:
        candidates = totient_perms(n)
        chosen = select_permutations(candidates, n, asked.degree)
        graph = nx.DiGraph([(v, (v + g) % n) for v in range(n) for g in chosen])
        runs = paired(asked.repeat, {
            "TotientPerms": lambda n=n: totient_perms(n),
            "Select": lambda n=n, c=candidates: select_permutations(c, n, asked.degree),
            "CoinChangeMod": lambda n=n, g=chosen: coin_change_mod(n, g),
            "networkx BFS": lambda g=graph: nx.single_source_shortest_path_length(g, 0),
        })  # fmt: skip
        seconds = {name: least(own) for name, own in runs.items()}
        found, distances = runs["CoinChangeMod"][0][0], runs["networkx BFS"][0][0]
        assert max(distances.values()) == found.hops.max()
        *ours, stock = seconds.values()
        yield {
            "n": n, **{f"{name} s": f"{value:.5f}" for name, value in seconds.items()},
            "our three s": f"{sum(ours):.5f}", "BFS / coins": f"{stock / seconds['CoinChangeMod']:.1f}",
            "generators": chosen, "diameter": found.hops.max(), "peak MB": peak_mb(),
        }  # fmt: skip


def heuristics(asked):
    """All-to-all and an all-reduce over everybody: bytes on the busiest link, and seconds, the check included."""
    for n in asked.sizes:
        runs = {method: clocked(method, dense(n, asked.degree), Limits()) for method in METHODS}
        cells = {name: f"{result.objective:.4g} ({spent.processor_s:.1f})" for name, (result, spent) in runs.items()}
        bound = next(result.bound for result, _ in runs.values())
        yield {"n": n, "bound": bound, **cells, "peak MB": peak_mb()}


def paths(asked):
    """4 shortest paths of a pair on a circulant, beside networkx on a sample of pairs."""
    for n in asked.sizes:
        generators = select_permutations(totient_perms(n), n, asked.degree)
        network = Network.of(n, {(v, (v + g) % n): 1 for v in range(n) for g in generators})
        pairs = np.array(list(itertools.permutations(range(n), 2)), dtype=np.int32)
        k_shortest_paths(network, pairs[:2], 4)
        sets, ours = timed(k_shortest_paths, network, pairs, 4)
        graph = nx.DiGraph(list(zip(network.tails.tolist(), network.heads.tolist(), strict=True)))
        few = np.random.default_rng(0).choice(len(pairs), min(asked.sample, len(pairs)), replace=False)

        def stock(graph=graph, few=few, pairs=pairs):
            return [list(itertools.islice(nx.shortest_simple_paths(graph, *pairs[q].tolist()), 4)) for q in few]

        theirs, took = timed(stock)
        for q, expected in zip(few, theirs, strict=True):
            assert [len(path) for path in sets.of_pair(q)] == [len(path) for path in expected]
        ours_us, theirs_us = (1e6 * s / k for s, k in ((ours.processor_s, len(pairs)), (took.processor_s, len(few))))
        yield {"n": n, "pairs": len(pairs), "ours, µs a pair": f"{ours_us:.1f}",
               "networkx, µs a pair": f"{theirs_us:.0f}", "ratio": f"{theirs_us / ours_us:.0f}"}  # fmt: skip


BENCH = Benchmark(
    rings, heuristics, paths,
    degree=Option(4, "ports of a server"),
    ring_sizes=Option([64, 256, 1024, 4096], "servers of the first table", quick=[64]),
    sizes=Option([16, 32, 64, 128], "servers of the others", quick=[16]),
    sample=Option(60, "pairs that networkx routes", quick=5),
    repeat=Option(5, quick=2),
)  # fmt: skip
