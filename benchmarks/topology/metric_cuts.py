"""What metric inequalities do to the root bound of MinCongestion, and to its branch and bound.

Bounds are bytes on the busiest link, the best known is given. ``paths`` is what all inequalities together could reach
that weight the loads of links by lengths and know of designs only which chains of up to three links they contain: the
relaxation with a variable for the part of each pair's traffic on each such chain.
"""

import itertools

import pyomo.environ as pyo

import ddlopt
from benchmarks.harness import Benchmark, Option, timed
from ddlopt.frontier.topology.formulations.min_volume import MinVolume
from ddlopt.frontier.topology.metric.metric_cuts import MetricCuts
from ddlopt.frontier.topology.metric.separation import MetricSeparation
from ddlopt.instances import library
from ddlopt.models.topology import evaluate
from ddlopt.models.topology.formulations.min_congestion import MinCongestion, unit_bytes
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import Exact, build_model

INSTANCES = ("danoint", "random-n8-d2-s1", "random-n8-d2-s2", "random-n8-d2-s3")
SEPARATIONS = {
    "rounded": (("rounded",), 1),
    "split": (("split",), 1),
    "neighbourhood": (("neighbourhood",), 1),
    "neighbourhood, 3 rounds": (("neighbourhood",), 3),
}


def known(name):
    """(instance, best known design, its bytes on the busiest link)."""
    instance = ddlopt.load(name)
    design = library.best(name)
    return instance, design, float(evaluate(instance, design).details["max_link_load_bytes"])


def root(asked):
    """Bound at the root."""
    for name in asked.instances:
        instance, _, best = known(name)
        for label in asked.cuts:
            kinds, rounds = SEPARATIONS[label]
            separation = MetricSeparation(kinds, rounds, achievable_bytes=best)
            found, spent = timed(separation.run, instance, asked.time_limit)
            before, after = found.first_bound_bytes, found.bound_bytes
            yield {
                "instance": name, "best known": f"{best:.4f}", "cuts": label, "before": f"{before:.4f}",
                "after": f"{after:.4f}", "gap closed": f"{100 * (after - before) / (best - before):.1f} %",
                "tight cuts": len(found.cuts), "LPs": found.programs, "CPU": f"{spent.processor_s:.0f} s",
            }  # fmt: skip


def paths(asked):
    """The most that rows of weighted loads could reach at the root."""
    for name in asked.instances:
        instance, _, best = known(name)
        volume, plain = (
            relaxed_bytes(build_model("topology", kind(numbering=False), instance), instance)
            for kind in (MinVolume, MinCongestion)
        )
        given = {"achievable_bytes": best, "proven_bytes": plain * (1 - 1e-9), "unlaid_links": True}
        figures = {"MinVolume": volume, "MinCongestion": plain, "paths": chains_bytes(instance)}
        figures["paths, best known given"] = chains_bytes(instance, **given)
        yield {"instance": name, **{heading: f"{value:.4f}" for heading, value in figures.items()}}


def tree(asked):
    """Bound after so many nodes of HiGHS, from the best known design; processor seconds with separation."""
    for name in asked.instances:
        instance, design, best = known(name)
        backend = Highs({"mip_max_nodes": asked.nodes})
        plain = Exact("min-congestion", "topology", MinCongestion(achievable_bytes=best), backend)
        row, bandwidth = {"instance": name, "best known": f"{best:.4f}"}, instance.link_bandwidth_bytes_per_s
        for method in (plain, MetricCuts(backend=backend)):
            found, spent = timed(method.solve, instance, Limits(), start=design)
            row[method.name] = f"{(found.bound - instance.compute_s) * bandwidth:.4f}"
            row[f"{method.name}, CPU"] = f"{spent.processor_s:.0f} s"
        yield row


def chains_bytes(instance, **options):
    """LP bound of MinCongestion with the traffic of each pair on chains of links."""
    model = build_model("topology", MinCongestion(numbering=False, **options), instance)
    block, n, d = model.topology, instance.servers, instance.degree
    traffic = instance.traffic_bytes / unit_bytes(instance)
    chains = {size: list(itertools.permutations(range(n), size)) for size in (2, 3, 4)}
    b = block.chains = pyo.Block()
    b.laid2 = pyo.Var(chains[3], bounds=(0, 1))
    b.laid3 = pyo.Var(chains[4], bounds=(0, 1))
    b.part1, b.part2, b.part3 = (pyo.Var(chains[size], bounds=(0, 1)) for size in (2, 3, 4))
    b.longer = pyo.Var(chains[2], bounds=(0, 1))
    b.far = pyo.Var([(s, i, j) for s in range(n) for i, j in chains[2] if j != s], bounds=(0, None))
    b.rows = pyo.ConstraintList()
    for s, w, t in chains[3]:
        b.rows.add(b.laid2[s, w, t] <= block.joined[s, w])
        b.rows.add(b.laid2[s, w, t] <= block.joined[w, t])
        b.rows.add(block.between[s, w, t, 2] <= b.laid2[s, w, t])
        b.rows.add(b.part2[s, w, t] <= b.laid2[s, w, t])
        rest = [v for v in range(n) if v not in (s, w, t)]
        b.rows.add(sum(b.laid3[s, w, t, v] for v in rest) <= d * b.laid2[s, w, t])
        b.rows.add(sum(b.laid3[v, s, w, t] for v in rest) <= d * b.laid2[s, w, t])
    for s, v, w, t in chains[4]:
        b.rows.add(b.laid3[s, v, w, t] <= b.laid2[s, v, w])
        b.rows.add(b.laid3[s, v, w, t] <= b.laid2[v, w, t])
        b.rows.add(b.part3[s, v, w, t] <= b.laid3[s, v, w, t])
    carried = {key: [b.far[key]] for key in b.far}
    parts = {pair: [b.part1[pair], b.longer[pair]] for pair in chains[2]}
    for size, part in ((2, b.part1), (3, b.part2), (4, b.part3)):
        for chain in chains[size]:
            s, t = chain[0], chain[-1]
            if size > 2:
                parts[s, t].append(part[chain])
            for link in itertools.pairwise(chain):
                carried[s, *link].append(traffic[s, t] * part[chain])
    for s, t in chains[2]:
        rest = [v for v in range(n) if v not in (s, t)]
        b.rows.add(b.part1[s, t] <= block.joined[s, t])
        b.rows.add(sum(b.laid2[s, t, v] for v in rest) <= d * block.joined[s, t])
        b.rows.add(sum(b.laid2[v, s, t] for v in rest) <= d * block.joined[s, t])
        b.rows.add(sum(parts[s, t]) == 1)
        arriving = sum(b.far[s, u, t] for u in range(n) if u != t)
        b.rows.add(arriving - sum(b.far[s, t, v] for v in rest) == traffic[s, t] * b.longer[s, t])
    for s in range(n):
        volume = sum(b.far[s, i, j] for i, j in chains[2] if j != s)
        b.rows.add(volume >= 4 * sum(traffic[s, t] * b.longer[s, t] for t in range(n) if t != s))
    for key, terms in carried.items():
        b.rows.add(block.flow[key] >= sum(terms))
    return relaxed_bytes(model, instance)


def relaxed_bytes(model, instance):
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(model)
    return Highs().solve(model, Limits()).objective * unit_bytes(instance)


BENCH = Benchmark(
    paths, root, tree,
    instances=Option(list(INSTANCES), quick=["danoint"]),
    cuts=Option(list(SEPARATIONS), "separations at the root", quick=["rounded"], choices=SEPARATIONS),
    time_limit=Option(300.0, "seconds for each separation", quick=2.0),
    nodes=Option(200, "of each branch and bound", quick=2),
)  # fmt: skip
