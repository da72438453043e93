"""What metric inequalities do to the root bound of MinCongestion, and to its branch and bound.

Bounds are bytes on the busiest link. ``paths`` is what all inequalities together could reach that weight the loads of
links by lengths and know of designs only which chains of up to three links they contain: the relaxation with a
variable for the part of each pair's traffic on each such chain.
"""

import argparse
import itertools
import time

import pyomo.environ as pyo
from rich.console import Console
from rich.table import Table

import ddlopt
from ddlopt.instances import library
from ddlopt.models.topology import evaluate
from ddlopt.models.topology.min_congestion import MinCongestion, unit_bytes
from ddlopt.models.topology.min_volume import MinVolume
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import Exact, build_model
from ddlopt.solvers.topology.metric_cuts import MetricCuts
from ddlopt.solvers.topology.metric_separation import MetricSeparation

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


def root_table(names, labels, time_s):
    table = Table(title="Bound at the root, bytes on the busiest link; the best known is given")
    for column in ("instance", "best known", "cuts", "before", "after", "gap closed", "tight cuts", "LPs", "CPU"):
        table.add_column(column, justify="left" if column in ("instance", "cuts") else "right")
    for name in names:
        instance, _, best = known(name)
        for label in labels:
            kinds, rounds = SEPARATIONS[label]
            started = time.process_time()
            found = MetricSeparation(kinds, rounds, achievable_bytes=best).run(instance, time_s)
            used = f"{time.process_time() - started:.0f} s"
            before, after = found.first_bound_bytes, found.bound_bytes
            closed = f"{100 * (after - before) / (best - before):.1f} %"
            cells = [f"{best:.4f}", label, f"{before:.4f}", f"{after:.4f}", closed, str(len(found.cuts))]
            table.add_row(name, *cells, str(found.programs), used)
            print(name, *cells, found.programs, used, flush=True)
    return table


def paths(instance, **options):
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


def paths_table(names):
    table = Table(title="The most that rows of weighted loads could reach at the root")
    for column in ("instance", "MinVolume", "MinCongestion", "paths", "paths, best known given"):
        table.add_column(column, justify="left" if column == "instance" else "right")
    for name in names:
        instance, _, best = known(name)
        volume, plain = (
            relaxed_bytes(build_model("topology", kind(numbering=False), instance), instance)
            for kind in (MinVolume, MinCongestion)
        )
        given = {"achievable_bytes": best, "proven_bytes": plain * (1 - 1e-9), "unlaid_links": True}
        row = (volume, plain, paths(instance), paths(instance, **given))
        table.add_row(name, *(f"{value:.4f}" for value in row))
        print(name, *(f"{value:.4f}" for value in row), flush=True)
    return table


def tree_table(names, nodes):
    table = Table(title=f"Bound after {nodes} nodes of HiGHS, from the best known design")
    for column in ("instance", "best known", "min-congestion", "CPU", "metric-cuts", "CPU, with separation"):
        table.add_column(column, justify="left" if column == "instance" else "right")
    for name in names:
        instance, design, best = known(name)
        backend = Highs({"mip_max_nodes": nodes})
        plain = Exact("min-congestion", "topology", MinCongestion(achievable_bytes=best), backend)
        cells, bandwidth = [f"{best:.4f}"], instance.link_bandwidth_bytes_per_s
        for method in (plain, MetricCuts(backend=backend)):
            started = time.process_time()
            found = method.solve(instance, Limits(), start=design)
            cells += [f"{(found.bound - instance.compute_s) * bandwidth:.4f}", f"{time.process_time() - started:.0f} s"]
            print(name, *cells, found.details.get("nodes"), flush=True)
        table.add_row(name, *cells)
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", nargs="+", default=INSTANCES)
    parser.add_argument("--root-seconds", type=float, default=300, help="for each separation")
    parser.add_argument("--nodes", type=int, default=200, help="of each branch and bound; 0 leaves it out")
    parser.add_argument("--cuts", nargs="*", default=SEPARATIONS, choices=SEPARATIONS, help="none leaves the root out")
    parser.add_argument("--no-paths", action="store_true", help="leave out the largest linear programs")
    arguments = parser.parse_args()
    tables = [] if arguments.no_paths else [paths_table(arguments.instances)]
    if arguments.cuts:
        tables.append(root_table(arguments.instances, arguments.cuts, arguments.root_seconds))
    if arguments.nodes > 0:
        tables.append(tree_table(arguments.instances, arguments.nodes))
    for table in tables:
        Console(width=160).print(table)


if __name__ == "__main__":
    main()
