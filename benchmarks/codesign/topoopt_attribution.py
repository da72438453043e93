"""What TopoOpt loses, and by which of its ingredients: one is swapped at a time, at the strategies that it finds.

The strategies are those of ``alternating``, the links, rings and routes those of TopologyFinder for them. Then, each
time with everything else as it was:

- split: every number of ports for rings from 0 to d in place of the proportional one;
- generators: other ring generators of the largest group in place of the geometric ones. All sets where they are few,
  else those whose circulant has the least traffic times hops, ``--sets`` of them;
- routing: pairs and ring shares split as is best for the same links and rings, in place of one path each;
- all three: the best routing on links of the best splits and generators together;
- any links: the best design that ``link-exchange`` finds for these strategies in ``--time-limit`` seconds;
- strategies: the exact ones on TopologyFinder's links, with its routes and the shortest ones, and up to 16 servers with
  the best routes;
- everything: the best plan of ``joint`` and ``alternating`` with both planes exact, in ``--time-limit`` seconds each.

Instances of the family ``topology`` have their strategies given, and no figures for the last two.

A cell is the factor by which the iteration gets shorter and, in brackets, the time of communication. Writes
docs/results/topoopt_attribution.md.
"""

import itertools
import math

import numpy as np

import ddlopt
from benchmarks.harness import Benchmark, Option
from ddlopt.analysis.texts import time_text
from ddlopt.frontier.topology.blocks.bounds import congestion_bounds
from ddlopt.models.catalogue import family
from ddlopt.models.codesign import job_of
from ddlopt.models.codesign.formulations.rows.coupling import plan_of
from ddlopt.models.errors import DdloptError
from ddlopt.models.topology import evaluate
from ddlopt.models.topology.permutations import totients
from ddlopt.solvers.codesign.fixed_routes import FixedRoutes
from ddlopt.solvers.codesign.half_rounds import best_on_links, best_on_routes
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.topology.balance.balance import Effort, Job, balance, heads_of
from ddlopt.solvers.topology.link_exchange.link_exchange import LinkExchange
from ddlopt.solvers.topology.topoopt.coin_change import coin_change_mod
from ddlopt.solvers.topology.topoopt.topology_finder import TopologyFinder

HEAD = (
    "# Which ingredient of TopoOpt loses what\n\n"
    "What the columns mean: [codesign.md](../families/codesign.md#what-alternating-loses-and-where).\n\n"
)
SIZES = ("n12-d4", "n16-d4", "n32-d4", "n64-d4", "n128-d4")
JOBS = ("dlrm", "candle", "bert", "ncf", "resnet50", "vgg16")
GIVEN = ("dlrm-stress-n16-d4", "hybrid-n16-d4-s1", "dlrm-stress-n128-d4", "ncf-n128-d4")
"""Instances of the family ``topology`` with more model-parallel traffic than the strategies found have."""
SAMPLE = 10_000
"""Sets of generators whose hops are counted where there are more."""
BALANCED = 3
"""Designs with other splits and generators that get the best routing."""
FREE_ROUTES = 16
"""Servers up to which the exact strategies get new routes as well."""


def lay(job, **options):
    """TopologyFinder's design with some ingredient given, and its busiest link; None where it finds none."""
    try:
        design, notes = TopologyFinder(**options).answer(job, 0, Clock(Limits(), None), None)
    except DdloptError:
        return None
    return float(evaluate(job, design).details["max_link_load_bytes"]), design, notes


def generator_sets(job, used, most):
    """Sets of ring generators of the largest group to try, the most promising first."""
    group = max(job.allreduce_groups, key=lambda each: each.hop_bytes)
    n, k, count = job.servers, len(group.members), len(used)
    candidates = totients(k)
    if math.comb(len(candidates), count) <= SAMPLE:
        sets = list(itertools.combinations(candidates, count))
    else:
        rng = np.random.default_rng(0)
        sets = [tuple(sorted(rng.choice(candidates, count, replace=False).tolist())) for _ in range(SAMPLE)]
    if len(sets) <= most:
        return sets
    rows, columns = np.indices((n, n))
    by_offset = np.bincount(((columns - rows) % n).ravel(), job.traffic_bytes.ravel(), minlength=n)

    def volume(chosen):
        coins = coin_change_mod(n, [p * n // k for p in chosen])
        return by_offset @ np.where(coins.hops < 0, n, coins.hops)

    return sorted(sets, key=volume)[:most]


def routed(job, design):
    """Busiest link when pairs and ring shares are split at best over the design's links and rings."""
    links = {(i, j): count for i, j, count in design.links}
    rings = {}
    for ring in design.rings:
        rings.setdefault(ring.group, []).append(ring.members)
    most = max((len(known) for known in rings.values()), default=1)
    effort = Effort(kicks=-1, columns=most)
    demand = Job(job)
    return balance(demand, heads_of(job, links), demand.orders(rings, most), effort).congestion_bytes


def other_links(job, base, most):
    """The least busiest link by column; ``base`` is TopologyFinder's."""
    best, design, notes = base
    ports, used = notes["allreduce_degree"], max(notes["generators"].values(), key=len, default=[])
    found = {"split": best, "generators": best}
    tried = [base]
    splits = [each for p in range(job.degree + 1) if p != ports and (each := lay(job, allreduce_ports=p))]
    tried += splits
    found["split"] = min(each[0] for each in tried)
    if job.allreduce_groups and used:
        for chosen in generator_sets(job, used, most):
            if each := lay(job, generators=chosen):
                tried.append(each)
                found["generators"] = min(found["generators"], each[0])
        split = min([base, *splits], key=lambda each: each[0])[2]["allreduce_degree"]
        if split not in (0, ports):
            both = [lay(job, allreduce_ports=split, generators=s) for s in generator_sets(job, used[:split], most // 2)]
            tried += [each for each in both if each]
    found["routing"] = min(best, routed(job, design))
    ranked = sorted(tried, key=lambda each: each[0])[:BALANCED]
    found["all three"] = min([found["routing"], *(min(each[0], routed(job, each[1])) for each in ranked)])
    return found


def links_row(name, job, most, time_limit):
    """Cells up to "any links", both designs (TopologyFinder, ``link-exchange``), the times that cells refer to."""
    base = lay(job)
    bandwidth = job.link_bandwidth_bytes_per_s
    reduced = sum(len(group.members) * group.hop_bytes for group in job.allreduce_groups)
    loads = other_links(job, base, most)
    exchanged = LinkExchange().solve(job, Limits(time_s=time_limit))
    loads["any links"] = min(float(exchanged.details["max_link_load_bytes"]), loads["all three"])
    before = job.iteration_time_s(base[0]), base[0] / bandwidth
    cells = {
        "instance": name,
        "TopoOpt": time_text(before[0]),
        "communicating": f"{before[1] / before[0]:.0%}",
        "all-reduce": f"{reduced / (reduced + job.traffic_bytes.sum()):.0%}",
    }
    for key, load in loads.items():
        cells[key] = factor(before, (job.iteration_time_s(load), load / bandwidth))
    bound = job.iteration_time_s(max(congestion_bounds(job).values()))
    others = {"strategies": "–", "everything": "–", "at most": f"{before[0] / bound:.3f}"}
    return cells | others, (base[1], exchanged.solution), before


def factor(before, after):
    return f"{before[0] / after[0]:.3f} ({before[1] / max(after[1], 1e-12):.3f})"


def row(name, most, time_limit):
    """One line of the table for a co-design instance."""
    instance = ddlopt.load(f"codesign/{name}")
    alternating = ddlopt.solve(instance, "alternating", time_limit=time_limit)
    choices = alternating.solution.choices(instance)
    cells, (design, exchanged), before = links_row(name, job_of(instance, choices), most, time_limit)
    routes = FixedRoutes.of(instance, design, choices)
    clock = Clock(Limits(time_s=2 * time_limit), None)
    better, _ = best_on_routes(routes, choices, clock, 0, time_limit)
    plan = plan_of(instance, better, routes.design_for(better))
    if instance.servers <= FREE_ROUTES:
        plan = best_on_links(instance, plan, clock, 0, time_limit)
    others = [
        ddlopt.solve(instance, method, time_limit=time_limit)
        for method in ("joint", "alternating:strategies=exact,topology=exact")
    ]
    everything = [
        plan,
        alternating.solution,
        plan_of(instance, choices, exchanged),
        *(each.solution for each in others if each.solution is not None),
    ]
    for key, plans in (("strategies", [plan]), ("everything", everything)):
        checked = [family("codesign").evaluate(instance, each) for each in plans]
        best = min(checked, key=lambda each: each.objective)
        cells[key] = factor(before, (float(best.objective), float(best.details["communication_s"])))
    bound = max(each.bound for each in (alternating, *others) if each.bound is not None)
    return cells | {"at most": f"{before[0] / bound:.3f}"}


def means(rows):
    """The geometric means of all rows."""
    cells = {"instance": "geometric mean", "TopoOpt": "", "communicating": "", "all-reduce": ""}
    for key in rows[0].keys() - cells.keys():
        numbers = np.array([[float(part.strip("()")) for part in each[key].split()] for each in rows])
        iteration, *communication = np.exp(np.log(numbers).mean(axis=0))
        cells[key] = f"{iteration:.3f}" + "".join(f" ({each:.3f})" for each in communication)
    return {key: cells[key] for key in rows[0]}


def ingredients(asked):
    """A row for each instance."""
    rows = []
    for name in asked.instances:
        rows.append(row(name, asked.sets, asked.time_limit))
        yield rows[-1]
    if rows:
        yield means(rows)
    for name in asked.given:
        yield links_row(name, ddlopt.load(f"topology/{name}"), asked.sets, asked.time_limit)[0]


BENCH = Benchmark(
    ingredients,
    page="topoopt_attribution",
    head=HEAD,
    instances=Option([f"{job}-{size}" for size in SIZES for job in JOBS], quick=["vgg16-n12-d4"]),
    given=Option(list(GIVEN), "instances of the family topology", quick=["hybrid-n16-d4-s1"]),
    sets=Option(12, "sets of generators to lay", quick=2),
    time_limit=Option(20.0, "seconds for each search", quick=1.0),
)
