"""What rings lose against trees on the links of designs, by job, on tori and rails, and on all regular digraphs.

All-gather of all servers; an all-reduce in turn takes twice as long on links that are as many out as in. Trees are at
the bound of a cut, as fractions. Rings are the best mixture, proven up to twelve servers, else the best one found.
"""

from collections import defaultdict
from fractions import Fraction
from itertools import combinations, product

import networkx as nx
import numpy as np

import ddlopt
from benchmarks.harness import Benchmark, Option
from ddlopt import instances
from ddlopt.frontier.topology.collective.rings import Rings
from ddlopt.frontier.topology.collective.tours import EXACT
from ddlopt.instances import generators
from ddlopt.instances.workloads.links_given import network, of_design
from ddlopt.models.topology import TopologyInstance
from ddlopt.models.topology.collective.bounds import exact_collective_bound
from ddlopt.solvers.contracts import Limits

ORDINARY = (
    ("torus", {"dimensions": "3x3"}), ("torus", {"dimensions": "3x4"}), ("torus", {"dimensions": "4x4"}),
    ("torus", {"dimensions": "2x2x3"}), ("two-way-ring", {"accelerators": 8}), ("hypercube", {"accelerators": 8}),
    ("rails", {"boxes": 2}), ("rails", {"boxes": 4}),
)  # fmt: skip


def losses(instance, limit_s):
    """What the best rings take over what trees take: without forwarding and with it; None where there is no ring."""
    trees, found = exact_collective_bound(instance), []
    for forwarding in (False, True):
        result = Rings(forwarding=forwarding).solve(instance, Limits(time_s=limit_s))
        plan = result.solution
        # Where no ring is found among more than a few servers, nobody knows whether there is one.
        found.append(None if plan is None else ddlopt.check(instance, plan, exact=True).objective / trees)
    return tuple(found)


def jobs(largest):
    """Topology instances of the library on which servers forward, by kind of job."""
    found = defaultdict(list)
    for full in ddlopt.names("topology"):
        instance = ddlopt.load(full)
        if isinstance(instance, TopologyInstance) and instance.servers <= largest and instance.host_forwarding:
            found[instance.name.partition("-n")[0]].append(full)
    return found


def designs(asked):
    """Rings / trees on the links of TopologyFinder and on the best ones known, by kind of job."""
    for job, names in jobs(min(asked.largest, EXACT)).items():
        row = {"job": job, "instances": len(names)}
        for who, known in (("TopologyFinder", None), ("ours", instances.best)):
            told = [losses(gathered(full, known), asked.time_limit) for full in names[: asked.most]]
            for place, word in enumerate(("direct", "forwarding")):
                row[f"{who}, {word}"] = summary([each[place] for each in told])
        yield row


def large(asked):
    """Rings / trees of designs for more servers than tours are exact for: the best rings found, which may forward."""
    for full in ddlopt.names("topology"):
        instance = ddlopt.load(full)
        if isinstance(instance, TopologyInstance) and EXACT < instance.servers <= asked.largest:
            row = {"instance": instance.name}
            for who, known in (("TopologyFinder", None), ("ours", instances.best)):
                network_of = gathered(full, known)
                trees, found = exact_collective_bound(network_of), []
                for method in (Rings(orders="generators"), Rings()):
                    plan = method.solve(network_of, Limits(time_s=asked.time_limit)).solution
                    found += [] if plan is None else [ddlopt.check(network_of, plan, exact=True).objective / trees]
                row[who] = f"{float(min(found)):.3f}"
            yield row


def gathered(full, known=None):
    """An all-gather of 1 GB on the links of TopologyFinder's design, or on the best ones that are known."""
    design = ddlopt.solve(full, "topology-finder").solution if known is None else known(full)
    return of_design(ddlopt.load(full), design, "all-gather", 1e9)


def summary(ratios):
    """The mean and the worst of those that there are, and how many have no ring."""
    there = [float(each) for each in ratios if each is not None]
    none = len(ratios) - len(there)
    told = f"{sum(there) / len(there):.3f}, worst {max(there):.3f}" if there else "none found"
    return told + (f"; none found in {none}" if there and none else "")


def ordinary(asked):
    """Rings / trees on tori, rings, a hypercube and rails."""
    for kind, options in ORDINARY[: asked.most]:
        instance = generators.generate("topology", "collective", network=kind, collective="all-gather", **options)
        direct, forwarding = losses(instance, asked.time_limit)
        name = instance.name.removeprefix("all-gather-")
        yield {"network": name, "direct": summary([direct]), "forwarding": summary([forwarding])}


def classes(count, degree, duplex):
    """One of each class of strongly connected graphs with that many links at each node, up to isomorphism."""
    kept = defaultdict(list)
    for arcs in regular(count, degree, duplex):
        graph = nx.DiGraph(arcs)
        if len(graph) == count and nx.is_strongly_connected(graph):
            matrix = nx.to_numpy_array(graph, nodelist=range(count), dtype=int)
            key = tuple(int(np.trace(np.linalg.matrix_power(matrix, k))) for k in range(2, count + 1))
            if not any(nx.is_isomorphic(graph, other) for other in kept[key]):
                kept[key].append(graph)
    return [graph for group in kept.values() for graph in group]


def regular(count, degree, duplex):
    """Arcs of all graphs on 0..count-1 with that degree; node 0 has the first neighbours, which costs no class."""
    if duplex:
        yield from cubic(count, degree, (), [degree] * count)
        return
    rows = [list(combinations([j for j in range(count) if j != i], degree)) for i in range(count)]
    rows[0] = [tuple(range(1, degree + 1))]
    for chosen in product(*rows):
        into = [0] * count
        for row in chosen:
            for j in row:
                into[j] += 1
        if into == [degree] * count:
            yield [(i, j) for i, row in enumerate(chosen) for j in row]


def cubic(count, degree, edges, left):
    """Arcs of graphs the same both ways, each built node by node."""
    node = next((v for v in range(count) if left[v]), None)
    if node is None:
        yield [arc for i, j in edges for arc in ((i, j), (j, i))]
        return
    free = [v for v in range(node + 1, count) if left[v]]
    for chosen in combinations(free, left[node]):
        if node or chosen == tuple(range(1, degree + 1)):
            after = [0 if v == node else left[v] - (v in chosen) for v in range(count)]
            yield from cubic(count, degree, (*edges, *((node, v) for v in chosen)), after)


def exhaustive(asked):
    """All networks of one degree: which are best for trees, for rings that hop directly, and with forwarding."""
    cases = ((4, 2, False), (5, 2, False), (6, 2, False), (6, 3, True), (8, 3, True))
    for count, degree, duplex in cases[: asked.most]:
        best = Fraction(count - 1, count * degree)
        rows, told = {"trees": 0, "direct": 0, "forwarding": 0, "both": 0}, classes(count, degree, duplex)
        lost = []
        for graph in told:
            instance = network("x", count, 0, dict.fromkeys(graph.edges, 1.0), "all-gather", 1.0)
            trees = exact_collective_bound(instance)
            direct, forwarding = losses(instance, asked.time_limit)
            rows["trees"] += trees == best
            ringed = direct is not None and direct * trees == best
            rows["direct"] += ringed
            rows["forwarding"] += forwarding * trees == best
            rows["both"] += ringed and trees == best
            lost.append(forwarding)
        yield {
            "servers": count, "links a server": f"{degree}{' both ways' if duplex else ''}", "networks": len(told),
            "best for trees": rows["trees"], "best for direct rings": rows["direct"],
            "best for rings with forwarding": rows["forwarding"],
            "rings / trees, worst": str(max(lost)),
        }  # fmt: skip


BENCH = Benchmark(
    designs, large, ordinary, exhaustive,
    largest=Option(128, "servers of a job", 5), most=Option(100, "of each table, or of each job", 1),
    time_limit=Option(20.0, "seconds of rings", 2.0),
)  # fmt: skip
