"""The best widths, places and rings of one slot: against trying everything, and as a block in a host model."""

import itertools
from collections import Counter

import numpy as np
import pyomo.environ as pyo
import pytest
from scheduling_brute_force import UTILITIES, brute_force, choices, random_instance, slot_energy_j
from slot_cases import RING, changed, close, cluster, job, slot, solve, star
from volume import for_each, seeds, slow

from ddlopt.models.errors import NotApplicableError, SolverError
from ddlopt.models.scheduling import (
    AllOrNothing,
    Capped,
    Contention,
    Network,
    PolluxTiming,
    Run,
    Schedule,
    evaluate,
)
from ddlopt.models.scheduling.formulations.slot_embedding.slot_embedding import SlotEmbedding
from ddlopt.models.scheduling.formulations.slot_embedding.widths import slot_data, width_gains
from ddlopt.solvers.backends.matrix import linear_model
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import Exact, build_model, lp_relaxation

EVERY_UTILITY = tuple(UTILITIES)


def random_tree(rng, servers, switches):
    """A tree over servers and switches in any order; each direction has a bandwidth of its own."""
    nodes = rng.permutation(servers + switches).tolist()
    links = []
    for place in range(1, len(nodes)):
        u, v = nodes[place], nodes[int(rng.integers(place))]
        links += [(u, v, float(rng.uniform(0.4, 2)) * 1e9), (v, u, float(rng.uniform(0.4, 2)) * 1e9)]
    return Network(switches=switches, links=tuple(links), duplex=False)


def random_graph(rng, servers, switches, extra):
    """A directed cycle through all nodes and further arcs; some servers may hang on one switch instead."""
    leaves = [server for server in range(servers) if rng.random() < 0.5] if switches else []
    nodes = [node for node in rng.permutation(servers + switches).tolist() if node not in leaves]
    arcs = set(zip(nodes, nodes[1:] + nodes[:1], strict=True)) if len(nodes) > 1 else set()
    others = [pair for pair in itertools.permutations(nodes, 2) if pair not in arcs]
    arcs |= {others[k] for k in rng.permutation(len(others))[:extra].tolist()}
    for leaf in leaves:
        node = servers + int(rng.integers(switches))
        arcs |= {(leaf, node), (node, leaf)}
    links = tuple((u, v, float(rng.uniform(0.5, 3)) * 1e9) for u, v in sorted(arcs))
    return Network(switches=switches, links=links, duplex=False)


@pytest.mark.parametrize("network", ["star", "tree", "mesh", None])
@pytest.mark.parametrize("seed", seeds(1, 12))
def test_against_trying_everything(seed, network):
    rng = np.random.default_rng([seed, len(network or "")])
    instance = random_instance(
        rng,
        jobs=2 if network == "mesh" else 3,
        slots=1,
        places=((2, 2, 1), (1, 2, 1), (3, 2))[seed % 3],
        network=network,
        objective="max_min" if seed % 5 == 4 else "utility",
        utilities=EVERY_UTILITY,
        min_workers=seed % 3 == 0,
        latency=seed % 2 == 0,
        pollux=seed % 4 == 1,
        uneven=seed % 4 == 2,
        energy=seed % 5 == 1,
    )
    expected = brute_force(instance).objective
    assert solve(instance, places="servers").objective == close(expected)
    if network is not None:
        assert solve(instance, routing="circulation", places="servers").objective == close(expected)


@pytest.mark.parametrize("seed", seeds(2, 40))
def test_graphs_with_switches_against_trying_everything(seed):
    """Cores with leaf servers, servers in the core, arcs that only one direction has."""
    rng = np.random.default_rng([7, seed])
    servers = int(rng.integers(2, 5))
    instance = random_instance(rng, jobs=2, slots=1, places=(2, 1, 2, 1)[:servers], network="star")
    network = random_graph(rng, servers, int(rng.integers(1, 4)), int(rng.integers(0, 6)))
    instance = changed(instance, network=network)
    expected = brute_force(instance).objective
    assert solve(instance).objective == close(expected)


@pytest.mark.parametrize(("times", "runs"), [(2.0, 1), (1.9, 0)])
def test_a_ring_may_pass_over_an_arc_twice(times, runs):
    """0 -> 3 is the only arc out of server 0, and servers 1 and 2 have arcs to server 0 only."""
    rate = RING.bandwidth_bytes_per_s
    links = ((0, 3, times * rate), (3, 1, rate), (3, 2, rate), (1, 0, rate), (2, 0, rate))
    network = Network(switches=1, links=links, duplex=False)
    instance = cluster([job(least=3, most=3)], servers=3, gpus=1, network=network)
    assert len(solve(instance).solution.runs) == runs


@for_each("seed", seeds(2, 100))
def test_routings_agree_on_trees(seed):
    rng = np.random.default_rng([3, seed])
    servers = int(rng.integers(3, 7))
    places = (2, *(int(rng.integers(1, 3)) for _ in range(servers - 1)))
    instance = random_instance(
        rng,
        jobs=5,
        slots=1,
        places=places,
        network="star",
        min_workers=True,
        energy=seed % 4 == 0,
        uneven=seed % 3 == 0,
    )
    instance = changed(instance, network=random_tree(rng, servers, int(rng.integers(0, 4))))
    assert solve(instance, routing="circulation").objective == close(solve(instance, routing="cuts").objective)


@pytest.mark.slow
def test_routings_disagree_without_bandwidth():
    """The comparison above can fail: bandwidth matters in most of its instances."""
    matters = 0
    for seed in range(20):
        rng = np.random.default_rng([3, seed])
        servers = int(rng.integers(3, 7))
        places = (2, *(int(rng.integers(1, 3)) for _ in range(servers - 1)))
        instance = random_instance(rng, jobs=5, slots=1, places=places, network="star", min_workers=True)
        tree = changed(instance, network=random_tree(rng, servers, int(rng.integers(0, 4))))
        free = changed(instance, network=None)
        matters += solve(tree).objective < solve(free).objective * (1 - 1e-6)
    assert matters >= 10


def best_gain(instance, rows):
    """Largest sum of rows[i][width] less energy, trying all choices of all jobs."""
    options = [[None, *choices(instance, i)] for i in range(len(instance.jobs))]
    best = 0.0
    for chosen in itertools.product(*options):
        used, load = np.zeros_like(instance.capacity), Counter()
        for i, one in enumerate(chosen):
            if one is not None:
                for server, count in one[0].workers:
                    used[server] += count * instance.demand[i]
                rate = instance.jobs[i].timing.bandwidth_bytes_per_s
                load.update({arc: times * rate for arc, times in one[1].items()})
        fits = all(load[arc] <= instance.network.arcs[arc] for arc in load)
        if fits and (used <= instance.capacity).all():
            picked = [one and one[0] for one in chosen]
            energy = instance.energy_price_per_j * slot_energy_j(instance, picked)
            best = max(best, sum(rows[i][one.width] for i, one in enumerate(picked) if one) - energy)
    return best


@for_each("seed", seeds(4, 10))
def test_gain_after_progress(seed):
    """With mini-batches done before, the objective is the gain of the slot; so it is with any gains given."""
    rng = np.random.default_rng([11, seed])
    instance = random_instance(
        rng, jobs=3, slots=1, places=(2, 2), network="star", utilities=EVERY_UTILITY, energy=seed % 2 == 0
    )
    done = tuple(float(rng.uniform(0, 1.1)) * one.minibatches for one in instance.jobs)
    rows = []
    for i, one in enumerate(instance.jobs):
        worths = [
            float(one.utility.of(min(1.0, (done[i] + instance.progress(i, w)) / one.minibatches))) for w in range(5)
        ]
        rows.append([worth - worths[0] for worth in worths])
    expected = best_gain(instance, rows)
    for formulation in (
        SlotEmbedding(done=done),
        SlotEmbedding(
            gains=tuple(tuple(row[: one.max_workers + 1]) for row, one in zip(rows, instance.jobs, strict=True))
        ),
    ):
        model = build_model("scheduling", formulation, instance)
        outcome = Exact("x", "scheduling", formulation).backend.solve(model, Limits(gap=0.0))
        assert formulation.objective_value(instance, outcome.objective) == close(expected)
        assert evaluate(instance, formulation.read(model.scheduling, instance)).violations == ()


def test_smallest_part_after_progress():
    """Job b can catch up to 0.5 + 0.1 alone; c, which is finished, does not hold the others back."""
    jobs = [job("a", most=1, wanted=400.0), job("b", most=1, wanted=1000.0), job("c", most=1, wanted=5.0)]
    instance = cluster(jobs, servers=1, gpus=1, network=None, objective="max_min")
    formulation = SlotEmbedding(done=(240.0, 500.0, 7.0))
    model = build_model("scheduling", formulation, instance)
    outcome = Exact("x", "scheduling", formulation).backend.solve(model, Limits(gap=0.0))
    assert formulation.objective_value(instance, outcome.objective) == close(0.6)
    assert [run.job for run in formulation.read(model.scheduling, instance).runs] == [1]


def test_widths_that_gain_nothing_are_left_out():
    """A finished job, an all-or-nothing one that cannot finish, and widths past the last mini-batch wanted."""
    jobs = [
        job("done", wanted=50.0),
        job("far", wanted=1e6, utility=AllOrNothing()),
        job("near", wanted=150.0, timing=RING.model_copy(update={"gradient_bytes": 5e7})),
        job("finishes", most=4, wanted=100.0, utility=AllOrNothing()),
    ]
    instance = cluster(jobs, servers=2)
    data = slot_data(instance, done=(50.0, 0.0, 0.0, 0.0))
    per_slot = [instance.progress(2, w) for w in range(5)]
    assert per_slot[2] < 150 < per_slot[3]
    assert {i: sorted(gains) for i, gains in data.gains.items()} == {2: [1, 2, 3], 3: [1]}
    assert data.room[0].tolist() == [0, 0]
    assert data.room[2].tolist() == [max(data.gains[2])] * 2


def test_width_gains_below_the_smallest_width():
    instance = cluster([job(least=2, most=3)], servers=1, network=None)
    gains = width_gains(instance, 0)
    assert gains[0] == 0.0
    assert gains[1] == -np.inf
    assert gains[3] > gains[2] > 0


def test_energy_that_costs_more_than_progress_gains():
    power = {"idle_w": 100.0, "worker_w": 10.0}
    for price, runs in ((1e-9, 1), (1.0, 0)):
        instance = cluster([job(most=2)], servers=1, network=None, power=power, energy_price_per_j=price)
        assert len(solve(instance).solution.runs) == runs


def test_jobs_without_a_rate_take_no_bandwidth():
    """Pollux jobs on a network still get a ring, on a tree and on a graph."""
    timing = PolluxTiming(compute_s=0.1)
    wide = job(least=6, most=6, timing=timing)
    graph = Network(links=((0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)), duplex=False)
    for network in (star(3, 1.0), graph):
        instance = cluster([wide], servers=3, gpus=2, network=network)
        assert len(solve(instance).solution.runs[0].ring) > 2


TREE = Network(switches=3, links=(*((s, 6 + s // 3, 1.5e9) for s in range(6)), (6, 8, 2e9), (7, 8, 2e9)))
CYCLE = Network(links=tuple((s, (s + 1) % 6, 1.5e9) for s in range(6)))


@for_each("network", [star(6, 1.5e9), TREE, CYCLE])
def test_relaxation_is_pinned(network):
    """The optimum is 5.0838 on the star and on the tree, and 5.3546 on the cycle."""
    jobs = [
        job(str(k), least=w, most=w, utility=Capped(value=w + k / 10)) for k, w in enumerate((5, 5, 6, 7, 3, 3, 2, 5))
    ]
    instance = cluster(jobs, servers=6, gpus=4, network=network)
    assert lp_relaxation(slot(), instance).objective == pytest.approx(5.5468624, rel=1e-6)


@for_each(
    ("fields", "options", "reason"),
    [
        ({"slots": 2}, {}, "it models one slot, but there are 2"),
        ({"objective": "makespan"}, {}, "the objective makespan depends on when jobs end"),
        ({"objective": "completion"}, {}, "the objective completion depends on when jobs end"),
        ({"bandwidth": "shared"}, {}, "bandwidth is shared"),
        ({"network": None, "contention": Contention(between_servers_bytes_per_s=1e9, within_server_bytes_per_s=1e9)},
         {}, "with contention"),
        ({"network": Network(links=((0, 1, 1.0), (1, 0, 1.0), (0, 2, 1.0), (2, 0, 1.0)), switches=1, duplex=False)},
         {}, None),
        ({"network": Network(links=((0, 2, 1.0), (2, 1, 1.0), (1, 0, 1.0)), switches=1, duplex=False)},
         {"routing": "cuts"}, "cut indicators need a tree network"),
        ({}, {"done": (1.0, 2.0)}, "done has 2 entries, but there are 1 jobs"),
        ({}, {"gains": ((0.0,), (0.0,))}, "gains has 2 entries, but there are 1 jobs"),
        ({"objective": "makespan"}, {"gains": ((0.0, 1.0, 2.0, 3.0, 4.0),)}, None),
    ],
)  # fmt: skip
def test_refuses(fields, options, reason):
    instance = changed(cluster([job()]), **fields)
    said = SlotEmbedding(**options).refuses(instance)
    assert said is None if reason is None else said.startswith(reason)
    if reason is not None:
        with pytest.raises(NotApplicableError, match="slot-embedding does not cover 'slot': "):
            Exact("slot-embedding", "scheduling", SlotEmbedding(**options)).solve(instance, Limits())


def worst_violation(model):
    """Of all rows and bounds, at the values that the variables have."""
    linear = linear_model(model)
    values = np.array([variable.value for variable in linear.columns])
    rows = linear.matrix @ values
    return max(
        (linear.row_lower - rows).max(),
        (rows - linear.row_upper).max(),
        (linear.lower - values).max(),
        (values - linear.upper).max(),
    )


@pytest.mark.parametrize("network", ["star", slow("tree"), "mesh", slow(None)])
def test_start_is_a_solution(network):
    """Values given by a start satisfy the model, those completed by hand or by the solver."""
    rng = np.random.default_rng(21)
    for number in range(6):
        instance = random_instance(
            rng, jobs=4, slots=1, places=(2, 2, 1), network=network, min_workers=True, pollux=True, energy=number > 2
        )
        best = solve(instance, places="servers")
        model = build_model("scheduling", slot("servers"), instance)
        slot("servers").start(model.scheduling, instance, best.solution)
        fixed = [v for v in model.component_data_objects(pyo.Var) if v.is_integer() and not v.fixed]
        assert all(variable.value is not None for variable in fixed)
        for variable in fixed:
            variable.fix()
        outcome = Exact("x", "scheduling", SlotEmbedding()).backend.solve(model, Limits())
        assert SlotEmbedding().objective_value(instance, outcome.objective) == close(best.objective)
        assert worst_violation(model) < 1e-7


def test_start_leaves_out_workers_that_gain_nothing():
    instance = cluster([job(most=4, wanted=100.0)])
    start = Schedule(instance="slot", runs=(Run(job=0, start=0, slots=1, workers=((0, 2), (1, 2)), ring=(0, 2, 1, 2)),))
    model = build_model("scheduling", SlotEmbedding(), instance)
    SlotEmbedding().start(model.scheduling, instance, start)
    assert SlotEmbedding().read(model.scheduling, instance).runs[0].workers == ((0, 1),)


def test_read_refuses_part_of_a_worker():
    instance = cluster([job(least=6, most=6)])
    model = build_model("scheduling", SlotEmbedding(), instance)
    for variable in model.component_data_objects(pyo.Var):
        variable.set_value(0.5, skip_validation=True)
    with pytest.raises(SolverError, match=r"variable 'scheduling.width\[0,6\]' is 0.5, which is not whole"):
        SlotEmbedding().read(model.scheduling, instance)


def test_no_job_gains_anything():
    instance = cluster([job(wanted=1e9, utility=AllOrNothing())])
    result = solve(instance)
    assert result.objective == 0.0
    assert result.solution.runs == ()


@pytest.mark.parametrize("value", [1e-6, 1.0, 1e9])
def test_small_and_large_utilities(value):
    """Solvers have absolute tolerances; the model is measured such that they do not matter."""
    jobs = [job(str(k), least=k, most=k, utility=Capped(value=value * (1 + k / 10))) for k in (1, 2, 3, 4, 5)]
    result = solve(cluster(jobs, servers=2))
    reference = solve(
        cluster([one.model_copy(update={"utility": Capped(value=1 + k / 10)}) for k, one in enumerate(jobs, 1)])
    )
    assert result.objective == pytest.approx(value * reference.objective, rel=1e-9)
