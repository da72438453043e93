"""Small instances of every problem that has formulations, with some feasible solutions to walk on from.

A drawer takes a seed and gives an instance and answers, of which the check may refuse some; None for a seed that makes
no instance. None of them asks a formulation.
"""

import itertools
import random
from contextlib import suppress

import hot_cases
import jobs_brute_force
import joint_cases
import microbatch_cases
import numpy as np
import partition_cases
import pipeline_cases
import placement_brute_force
import register_cases
import sfb_cases
import step_cases
import table_cases
from aggregation_graph_cases import answers as graph_answers
from aggregation_graph_cases import random_instance as random_graph
from deployment_plans import random_deployment
from deployment_plans import random_instance as random_plan
from exchange_cases import answer as exchange_answer
from exchange_cases import instance as exchange_instance
from exchange_cases import walk
from forward_brute_force import tiny as tiny_forward
from gang_brute_force import random_gangs
from lane_brute_force import bucketings, random_lane_case
from networks_drawn import drawn as drawn_network
from scheduling_brute_force import Doing, _actions, _after, _may, _schedule
from scheduling_brute_force import random_instance as random_jobs
from slots_cases import delivered, overlapped, slots_instance, staying
from strategy_cases import random_case as random_strategies
from timeline_brute_force import every_plan, random_levels_case, random_timeline_case
from topology_cases import job
from tree_cases import random_tree

from ddlopt.instances import generators
from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.aggregation import AggregatingSwitches, Placement
from ddlopt.models.aggregation.slots.instance import SlotPlan
from ddlopt.models.aggregation.table.instance import LookupTables
from ddlopt.models.codesign.solution import CodesignPlan
from ddlopt.models.compression import CompressionPlan, ForwardPlan
from ddlopt.models.compression.timeline.choices import answer_of, as_timeline
from ddlopt.models.deployment import Partition
from ddlopt.models.deployment.microbatches.evaluate import evaluate_order
from ddlopt.models.deployment.strategies.instance import StrategyAssignment
from ddlopt.models.errors import InstanceError, NotApplicableError
from ddlopt.models.gossip.circulant.instance import CirculantGraph
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits


def answers_of(instance, names, seeds=(0, 1, 2)):
    """What heuristics find with some seeds."""
    for name in names:
        chosen = method(name, instance.family)
        if chosen.refuses(instance) is None:
            for seed in seeds:
                with suppress(NotApplicableError):
                    found = chosen.solve(instance, Limits(time_s=5.0), seed).solution
                    if found is not None:
                        yield found


def topology(seed, groups=False, servers=4):
    """Whole bytes between few servers, of one-way and duplex optics."""
    rng = np.random.default_rng(seed)
    traffic = rng.integers(0, 9, (servers, servers)) * (rng.random((servers, servers)) < 0.7)
    np.fill_diagonal(traffic, 0)
    rings = [(tuple(range(int(rng.integers(0, 2)), servers)), float(rng.integers(1, 9)))] if groups else []
    optics = "duplex" if seed % 3 == 2 else "one_way"
    instance = job(traffic, 2, rings, optics=optics, parallel_links=bool(rng.random() < 0.7))
    return instance, list(answers_of(instance, ("expander", "ocs-greedy", "topology-finder")))


def topology_with_groups(seed):
    """The same with an all-reduce group, whose rings may be any."""
    return topology(seed, True, 3)


def direct_circuits(seed):
    """One-way, no forwarding."""
    rng = np.random.default_rng(seed)
    traffic = rng.integers(1, 9, (4, 4))
    np.fill_diagonal(traffic, 0)
    instance = job(traffic * (rng.random((4, 4)) < 0.6), 3, host_forwarding=False)
    return instance, list(answers_of(instance, ("expander", "ocs-greedy", "topology-finder")))


SHAPES = (
    {},
    {"deadlines": True, "min_workers": True, "uneven": True},
    {"objective": "max_min"},
    {"objective": "makespan"},
    {"objective": "completion"},
    {"places": (2, 2), "energy": True, "utilities": ("capped",)},
    {"places": (2, 2), "network": "star", "jobs": 2},
    {"places": (2, 1, 2), "network": "mesh", "jobs": 2, "slots": 2},
    {"preemptive": False, "utilities": ("capped", "all_or_nothing")},
    {"preemptive": False, "places": (2, 2), "network": "tree", "jobs": 2},
    {"places": (2, 2), "network": "star", "jobs": 3, "slots": 1},
    {"slots": 1, "jobs": 3, "places": (2, 1), "utilities": ("all_or_nothing", "capped")},
)
"""Of tiny schedules: objectives, networks, servers, and jobs in one piece."""


def scheduling(seed, shapes=SHAPES):
    """Tiny schedules of all kinds; answers do anything that fits, slot by slot."""
    rng, draw = np.random.default_rng(seed), random.Random(seed)
    instance = random_jobs(rng, **{"jobs": 2, "slots": 3, "places": (3,)} | shapes[seed % len(shapes)])
    return instance, [each for each in (_random_schedule(instance, draw) for _ in range(12)) if each]


def slots(seed):
    """One slot, or jobs that it does not matter where they run."""
    return scheduling(seed, (SHAPES[10], SHAPES[11]))


def pieces(seed):
    """Jobs in one piece."""
    return scheduling(seed, (SHAPES[8], SHAPES[9], {"preemptive": False, "objective": "makespan"}))


def _random_schedule(instance, draw):
    state, taken = tuple(Doing() for _ in instance.jobs), []
    for slot in range(instance.slots):
        jobs = range(len(instance.jobs))
        may = [
            each
            for each in _actions(instance, slot)
            if all(_may(instance, i, slot, state[i], each[0][i]) for i in jobs)
        ]
        if not may:
            return None
        action, rates, _ = draw.choice(may)
        state = tuple(_after(instance, i, slot, state[i], action[i], rates[i]) for i in jobs)
        taken.append(action)
    return _schedule(instance, taken)


def gangs(seed):
    """Rigid gangs; answers are lists in any order."""
    rng = np.random.default_rng(seed)
    objective = ("makespan", "completion")[seed % 2]
    more = {"deadlines": seed % 3 == 0, "weights": True, "slots": 40}
    instance = random_gangs(rng, jobs=4, gpus=4, objective=objective, **more)
    return instance, list(answers_of(instance, ("list-scheduling", "sjf-bco", "fifo", "gang-search"), (0,)))


def sfb(seed):
    """Both cost models, with budgets now and then."""
    rng = np.random.default_rng(seed)
    budgets = {"memory_budget_bytes": float(rng.uniform(2, 20))} if seed % 3 == 0 else {}
    instance = sfb_cases.drawn(seed, 8, **budgets)
    return instance, list(answers_of(instance, ("none", "all", "poseidon", "tag"), (0,)))


def timeline(seed):
    """One wire."""
    instance = random_timeline_case(np.random.default_rng(seed))
    draw, name = random.Random(seed), instance.name
    states = draw.sample(known, min(20, len(known))) if (known := list(every_plan(instance))) else []
    fusion = instance.fusion
    return instance, [
        CompressionPlan(instance=name, choices=each.choices, buckets=each.buckets if fusion else ()) for each in states
    ]


def lanes(seed):
    """Several lanes."""
    instance = random_lane_case(np.random.default_rng(seed))
    draw, found = random.Random(seed), []
    for _ in range(20):
        choices = tuple(draw.randrange(len(instance.menus[gradient.menu])) for gradient in instance.gradients)
        sizes = draw.choice(list(bucketings(instance.size, instance.fusion))) if instance.fusion else ()
        found.append(CompressionPlan(instance=instance.name, choices=choices, buckets=sizes))
    return instance, found


def levels(seed):
    """Levels that a curve allows."""
    instance = random_levels_case(np.random.default_rng(seed))
    free, draw = as_timeline(instance), random.Random(seed)
    plans = list(every_plan(free))
    chosen = draw.sample(plans, min(20, len(plans)))
    return instance, [answer_of(instance, CompressionPlan(instance=free.name, choices=each.choices)) for each in chosen]


def forward(seed):
    """Parts of gradients in any order on the wire."""
    rng, draw = np.random.default_rng(seed), random.Random(seed)
    instance, found = tiny_forward(rng, budget=bool(seed % 2)), []
    for _ in range(20):
        parts = tuple(draw.choice(instance.parts) for _ in range(instance.size))
        order = [i for i, count in enumerate(parts) for _ in range(count)]
        draw.shuffle(order)
        choices = tuple(draw.randrange(2) for _ in parts)
        found.append(ForwardPlan(instance=instance.name, choices=choices, parts=parts, order=tuple(order)))
    return instance, found


CODESIGN = (
    {"servers": 3, "traffic": 0.5, "twins": 2},
    {"servers": 4, "degree": 2, "overlap": "full", "optics": "duplex", "twins": 1},
    {"servers": 3, "memory_slack": 1.05, "twins": 3, "measured": 0.3},
    {"servers": 3, "host_forwarding": False, "degree": 2, "twins": 2, "traffic": 0.5},
)
"""Of tiny joint problems."""


def codesign(seed):
    """Two or three layers; plans of any strategies on topologies of heuristics."""
    rng, draw = np.random.default_rng(seed), random.Random(seed)
    instance = random_job(rng, **{"layers": 2, "strategies": 2} | CODESIGN[seed % len(CODESIGN)])
    first = list(answers_of(instance, ("data-parallel", "expander", "alternating"), (0,)))
    found = list(first)
    for plan in first:  # other strategies on the same links where their job has the same groups
        names = tuple(draw.choice(layer.strategies).name for layer in instance.layers)
        found.append(CodesignPlan(instance=instance.name, strategies=names, design=plan.design))
    return instance, found


def plan(seed):
    """Small graphs of operators; deployments of any kind."""
    rng = np.random.default_rng(seed)
    instance = random_plan(rng, operators=5, groups=2, whole_numbers=bool(seed % 2))
    return instance, [random_deployment(rng, instance) for _ in range(20)]


def partition(seed):
    """Both goals, contiguous or not, with passes apart and several subgraphs."""
    fields = ({}, {"contiguous": True}, {"goal": "latency"}, {"goal": "latency", "subgraphs": 2},
              {"separate_passes": True}, {"separate_passes": True, "contiguous": True})[seed % 6]  # fmt: skip
    instance = partition_cases.drawn(seed, **fields)
    if instance is None:
        return None
    draw = random.Random(seed)
    count, found = instance.accelerators + instance.processors, []
    for _ in range(300):
        devices = tuple(draw.randrange(max(1, count)) for _ in instance.nodes)
        if draw.random() < 0.5:
            devices = tuple(sorted(devices))
        numbers = tuple(draw.randrange(instance.subgraphs) for _ in devices) if instance.subgraphs > 1 else ()
        found.append(Partition(instance=instance.name, devices=devices, subgraphs=numbers))
    return instance, found


def strategies(seed):
    """Tables with forbidden pairs, memory, pins and aliases."""
    instance, draw = random_strategies(seed), random.Random(seed)
    sizes = instance.costs.sizes.tolist()
    drawn = (tuple(map(draw.randrange, sizes)) for _ in range(200))
    return instance, [StrategyAssignment(instance=instance.name, strategies=each) for each in drawn]


def pipeline(seed):
    """Plans among all of a small instance."""
    instance, draw = pipeline_cases.drawn(seed, most=3), random.Random(seed)
    found = list(pipeline_cases.plans(instance))
    return instance, draw.sample(found, min(len(found), 200))


def cluster_jobs(seed, mode="rigid"):
    """What lists and fixed widths give, and orders of starts at random."""
    instance = jobs_brute_force.drawn(seed, mode, 2 if mode == "slots" else 3)
    names = ("list-jobs", "sequential", "sequential:widths=fastest", "sequential:widths=narrowest", "start-order")
    return instance, list(answers_of(instance, names, (0,)))


def cluster_joint(seed):
    """Plans of papers' heuristics, with widths and orders in two ways."""
    instance = joint_cases.drawn(seed)
    return instance, list(answers_of(instance, ("apart", "apart:widths=search,order=search"), (0,)))


def cluster_slots(seed):
    """The same with slots."""
    return cluster_jobs(seed, "slots")


def placement(seed):
    """What rules and short searches find, from several seeds."""
    try:
        instance = placement_brute_force.drawn(seed)
    except InstanceError:
        return None
    return instance, list(answers_of(instance, ("kueue", "slurm-block", "hived-cells", "gang-exchange")))


def microbatches(seed, span=False):
    """Orders of a small pipeline, in which micro-batches have the passes of each kind in their order."""
    instance = microbatch_cases.drawn(seed, zeros=False)
    if span:
        edges = [edge.model_copy(update={"forward_s": 0.0, "backward_s": 0.0}) for edge in instance.edges]
        instance = instance.changed(objective="span", edges=edges)
        if len(instance.chains) > 1:
            return microbatches(seed + 1, span)
    found = [each for each in microbatch_cases.orders(instance) if evaluate_order(instance, each, exact=True).feasible]
    return instance, random.Random(seed).sample(found, min(len(found), 40))


def step(seed):
    """Plans among all of a small instance."""
    instance, draw = step_cases.drawn(seed), random.Random(seed)
    found = list(step_cases.plans(instance))
    return instance, draw.sample(found, min(len(found), 200))


def hot(seed):
    """Hot sets, from the empty one on."""
    instance = hot_cases.drawn(seed, switches=1 + seed % 2)
    return instance, list(answers_of(instance, ("hot-random", "hot-frequency", "hot-density", "none")))


def registers(seed):
    """Placements at random."""
    goals = ("packets", "collisions")
    instance, draw = register_cases.small(seed, goals[seed % 2]), random.Random(seed)
    places = [r for r, capacity in enumerate(instance.capacities) for _ in range(capacity)]
    drawn = (tuple(draw.sample(places, instance.parameters)) for _ in range(20))
    return instance, [Placement(instance=instance.name, arrays=each) for each in drawn]


def tree(seed):
    """Sets of switches at random."""
    instance, draw = random_tree(seed, jobs=1 + seed % 2), random.Random(seed)
    found = []
    for _ in range(30):
        chosen = [tuple(v for v in range(instance.size) if draw.random() < 0.4) for _ in instance.jobs]
        found.append(AggregatingSwitches(instance=instance.name, switches=tuple(chosen)))
    return instance, found


def graph(seed):
    """Trees of one or two jobs in a small graph."""
    fields = ({"goal": "utilization"}, {"goal": "congestion"}, {"goal": "rates"},
              {"goal": "utilization", "merging": True}, {"goal": "rates", "merging": True},
              {"goal": "congestion", "merging": True})[seed % 6]  # fmt: skip
    try:
        instance, draw = random_graph(seed, **fields), random.Random(seed)
    except InstanceError:
        return None
    known = list(itertools.islice(graph_answers(instance), 3000))
    return instance, draw.sample(known, min(60, len(known)))


def slot_plans(seed):
    """Slots, whole or not, with links, servers to fall back on, late packets, buckets, jobs that come and go."""
    goal = ("total", "slowest")[seed % 2]
    instance = slots_instance(seed, links=seed % 3, whole=bool(seed % 4 < 2), back=0.5 * (seed % 5 < 2), goal=goal)
    if seed % 3 == 1:
        instance = delivered(instance, seed)
    if seed % 4 in (1, 2):
        instance = overlapped(instance, seed)
    if seed % 5 in (1, 2):
        instance = staying(instance, seed)
    rates = tuple(each.nic_bytes_per_s / 1000 for each in instance.jobs)
    one = SlotPlan(
        instance=instance.name,
        slots=tuple((1,) * len(each.switches) for each in instance.jobs),
        rates_bytes_per_s=rates,
    )
    return instance, [one, *answers_of(instance, ("slot-rule", "slot-prices"), (0,))]


def table(seed):
    """Divisions of operands into ranges or prefixes."""
    shape = {"entries": ("ranges", "prefixes")[seed % 2], "goal": ("sum", "max")[seed // 2 % 2]}
    instance = next(table_cases.several(1, seed, **shape))
    draw, found = random.Random(seed), []
    for _ in range(60):
        cuts = [sorted({t.low, *draw.sample(range(t.low, t.high + 1), draw.randrange(8))}) for t in instance.tables]
        found.append(LookupTables(instance=instance.name, starts=tuple(map(tuple, cuts))))
    return instance, [*found, *answers_of(instance, ("table-even", "table-split"), (0,))]


def circulant(seed):
    """Generators at random, with weights where averages are asked for."""
    draw = random.Random(seed)
    nodes, degree = draw.choice(((9, 4), (12, 4), (12, 3), (15, 6), (16, 4)))
    goal = ("gap", "averaging")[seed % 2]
    instance = generators.generate("gossip", "circulant", 0, nodes=nodes, degree=degree, goal=goal)
    found = []
    for _ in range(60):
        chosen = tuple(sorted(draw.sample(list(instance.candidates), draw.randrange(1, degree))))
        weights = tuple(round(draw.uniform(0, 0.25), 3) for _ in chosen) if goal == "averaging" else ()
        found.append(CirculantGraph(instance=instance.name, generators=chosen, weights=weights))
    return instance, found


def _is_refused(instance):
    """Whether links are so far apart that formulations say so (`RangeError`)."""
    return max(instance.bandwidth.values()) > 1e12 * min(instance.bandwidth.values())


def all_to_all(seed):
    """A small network, and what methods send over it."""
    instance = drawn_network(seed, "all-to-all")
    if instance is None or _is_refused(instance):
        return None
    return instance, list(answers_of(instance, ("tree-columns",), (0,)))


def tree_flows(seed):
    """A small network, and what methods send over it by trees and rings."""
    collective = ("all-gather", "all-reduce", "broadcast", "reduce-scatter")[seed % 4]
    instance = drawn_network(seed // 2, collective, balanced=seed % 3 > 0)
    methods = ("tree-columns", "forest", "rings", "ring-in-order", "double-binary-tree")
    return None if instance is None or _is_refused(instance) else (instance, list(answers_of(instance, methods, (0,))))


def exchange(seed):
    """Times at random, with a number of sends or a price."""
    draw = random.Random(seed)
    more = {"sends": draw.randrange(1, 5)} if seed % 2 else {"send_cost": draw.uniform(0.5, 5)}
    instance = exchange_instance(walk(seed, 12), **more)
    return instance, [exchange_answer(*sorted(draw.sample(range(1, 12), draw.randrange(5)))) for _ in range(30)]
