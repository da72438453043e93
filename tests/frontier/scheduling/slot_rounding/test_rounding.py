"""Oracles of one slot: that answers fit, bounds hold, and the relaxation is that over all mappings."""

from collections import Counter

import numpy as np
import pytest
from scheduling_brute_force import UTILITIES, brute_force, choices, random_instance
from scipy.optimize import linprog
from slot_cases import RING, cluster, job, star
from volume import for_each, seeds

from ddlopt.frontier.scheduling.slot_rounding.mapping_kernels import best_places
from ddlopt.frontier.scheduling.slot_rounding.rounding import RoundingOracle, relax
from ddlopt.models.scheduling import Run, Schedule, evaluate
from ddlopt.models.scheduling.formulations.slot_embedding.widths import slot_data
from ddlopt.solvers.scheduling.slot.embedding_oracles import NOTHING, EmbeddingOracle, SlotState, slot_problem

CLUSTERS = {
    "pool": {"places": (4, 2)},
    "one-server": {"places": (4,), "energy": True},
    "no-network": {"places": (3, 2), "uneven": True, "energy": True},
    "star": {"places": (2, 2, 1), "network": "star", "min_workers": True},
    "powered-star": {"places": (2, 2, 1), "network": "star", "energy": True},
    "tree": {"places": (1, 2, 1), "network": "tree", "min_workers": True, "pollux": True},
    "mesh": {"places": (2, 1, 2), "network": "mesh", "min_workers": True},
}
SEEDS = seeds(2, 8)


def instance_of(name, seed, **fields):
    rng = np.random.default_rng([seed, *name.encode()])
    return random_instance(
        rng, jobs=3, slots=1, utilities=tuple(UTILITIES), latency=seed % 2 == 0, **CLUSTERS[name], **fields
    )


def fresh(instance, slot=0):
    """Nothing is done yet, and all that are there may run."""
    active = [i for i, job in enumerate(instance.jobs) if job.arrival <= slot < instance.last_slot(i)]
    return SlotState(instance, slot, active, np.zeros(len(instance.jobs)))


def schedule_of(state, choice):
    held = {job: there for job, (there, _) in state.held.items()}
    held_rings = {job: ring for job, (_, ring) in state.held.items()}
    rings = held_rings | choice.rings
    runs = tuple(
        Run(job=job, start=state.slot, slots=1, workers=there, ring=rings.get(job, ()))
        for job, there in (held | choice.workers).items()
    )
    return Schedule(instance=state.instance.name, runs=runs)


def check(state, choice):
    """The choice fits, gains what it says, and not more than its bound."""
    evaluation = evaluate(state.instance, schedule_of(state, choice))
    assert evaluation.violations == ()
    if choice.bound is not None:
        assert choice.gain <= choice.bound
    return float(evaluation.objective)


@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize("seed", SEEDS)
def test_exact_and_rounded(name, seed):
    state = fresh(instance_of(name, seed))
    best = brute_force(state.instance).objective
    exact = EmbeddingOracle(gap=0.0).choose(state, np.random.default_rng(0), None)
    assert check(state, exact) == pytest.approx(exact.gain, rel=1e-9, abs=1e-12)
    assert exact.gain == pytest.approx(best, rel=1e-7, abs=1e-9)
    assert exact.bound == pytest.approx(best, rel=1e-7, abs=1e-9)
    for repair in (True, False):
        rounded = RoundingOracle(repair=repair).choose(state, np.random.default_rng(0), None)
        assert check(state, rounded) == pytest.approx(rounded.gain, rel=1e-9, abs=1e-12)
        assert rounded.gain <= best + 1e-9
        assert rounded.bound >= best - 1e-9


def relaxation_over_all_mappings(problem):
    """Every width, place and least ring of every job is a column."""
    instance, data = problem.instance, slot_data(problem.instance, gains=problem.gains)
    arcs = list(instance.network.arcs) if instance.needs_rings else []
    servers, resources = instance.capacity.shape
    columns, gains = [], []
    for i in range(len(instance.jobs)):
        for choice, passes in choices(instance, i):
            if not np.isfinite(problem.gains[i][choice.width]):
                continue
            taken = np.zeros((servers, resources))
            for server, count in choice.workers:
                taken[server] += count * instance.demand[i] / instance.capacity[server]
            load = [passes[arc] * data.rate[i] / instance.network.arcs[arc] for arc in arcs]
            if max(load, default=0) <= 1 and taken.max() <= 1:
                columns.append([*taken.ravel(), *load, *(np.arange(len(instance.jobs)) == i)])
                energy = sum(count * data.worker_cost[server] for server, count in choice.workers)
                gains.append(problem.gains[i][choice.width] - energy)
    for server in range(servers):
        idle = np.zeros((servers, resources))
        idle[server] = -1.0
        columns.append([*idle.ravel(), *np.zeros(len(arcs) + len(instance.jobs))])
        gains.append(-data.idle_cost[server])
    limits = [*np.zeros(servers * resources), *np.ones(len(arcs) + len(instance.jobs))]
    return -linprog(-np.array(gains), A_ub=np.array(columns).T, b_ub=limits, bounds=(0, 1), method="highs").fun


@for_each("name", ["one-server", "no-network", "star", "powered-star", "tree"])
@for_each("seed", SEEDS)
def test_relaxation_is_that_over_all_mappings(name, seed):
    problem = slot_problem(fresh(instance_of(name, seed)))
    relaxation = relax(problem)
    assert relaxation.mapper.exact
    expected = relaxation_over_all_mappings(problem)
    assert relaxation.value == pytest.approx(expected, rel=1e-5, abs=1e-9)
    assert relaxation.bound == pytest.approx(expected, rel=1e-5, abs=1e-9)
    assert relaxation.bound >= expected * (1 - 1e-9)


@for_each("seed", SEEDS)
def test_relaxation_on_a_graph_is_over_some_mappings(seed):
    """It is no bound, and not reported as one; it is not much below the whole relaxation either."""
    problem = slot_problem(fresh(instance_of("mesh", seed)))
    relaxation = relax(problem)
    expected = relaxation_over_all_mappings(problem)
    assert not relaxation.mapper.exact
    assert relaxation.bound == np.inf
    assert 0.9 * expected <= relaxation.value <= expected * (1 + 1e-9)


def test_weights_are_those_of_a_solution_of_the_relaxation():
    relaxation = relax(slot_problem(fresh(instance_of("star", 3))))
    taken, total = np.zeros(len(relaxation.mapper.servers)), Counter()
    for one, weight in zip(relaxation.columns, relaxation.weights, strict=True):
        taken[list(one.rows)] += weight * np.array(one.parts)
        total[one.job] += weight
    assert taken.max() <= 1 + 1e-9
    assert max(total.values()) <= 1 + 1e-9
    gains = [one.gain for one in relaxation.columns]
    assert relaxation.weights @ gains == pytest.approx(relaxation.value)


@for_each("seed", seeds(10, 40))
def test_best_places_against_trying_all(seed):
    """Nested cuts {0, 1}, {2}, {0, 1, 2} inside a cluster of four servers."""
    rng = np.random.default_rng(seed)
    cuts = [{0, 1}, {2}, {0, 1, 2}]
    items, starts = np.array([0, 1, 2, 4, 5, 3, 6]), np.array([0, 2, 3, 5, 7])
    gains = np.concatenate(([-np.inf], rng.uniform(0, 5, 4)))[None, :]
    gains[0, rng.integers(1, 5)] = -np.inf
    price, room = rng.uniform(0, 1, (1, 4)), rng.integers(0, 4, (1, 4))
    cut_price = np.where(rng.random((1, 4)) < 0.3, np.inf, rng.uniform(0, 1, (1, 4)))
    best = 0.0
    for counts in np.ndindex(4, 4, 4, 4):
        width = sum(counts)
        if 0 < width <= 4 and (np.array(counts) <= room[0]).all():
            used = set(np.flatnonzero(counts).tolist())
            split = sum(cut_price[0, u] for u, cut in enumerate(cuts) if used & cut and used - cut)
            best = max(best, gains[0, width] - float(price[0] @ counts) - split)
    value, width, places = best_places(gains, price, cut_price, room, starts, items)
    assert value[0] == pytest.approx(best, abs=1e-12)
    used = set(np.flatnonzero(places[0]).tolist())
    assert places.sum() == width[0]
    if used:
        split = sum(cut_price[0, u] for u, cut in enumerate(cuts) if used & cut and used - cut)
        assert gains[0, width[0]] - float(price[0] @ places[0]) - split == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("name", ["star", "tree", "mesh", "powered-star"])
@pytest.mark.parametrize("seed", SEEDS)
def test_next_to_jobs_that_are_held(name, seed):
    """What they take is taken; the exact choice gains what the optimum with them gains more than they do alone."""
    instance = instance_of(name, seed)
    whole = EmbeddingOracle(gap=0.0).choose(fresh(instance), np.random.default_rng(0), None)
    if not whole.workers:
        return
    job = min(whole.workers)
    held = {job: (whole.workers[job], whole.rings.get(job, ()))}
    others = [i for i in range(len(instance.jobs)) if i != job]
    state = SlotState(instance, 0, others, np.zeros(len(instance.jobs)), held=held)
    alone = check(state, NOTHING)
    exact = EmbeddingOracle(gap=0.0).choose(state, np.random.default_rng(0), None)
    assert check(state, exact) == pytest.approx(alone + exact.gain, rel=1e-7, abs=1e-9)
    # The optimum has the held job just so, and the others in their best way.
    assert alone + exact.gain == pytest.approx(whole.gain, rel=1e-7, abs=1e-9)
    rounded = RoundingOracle().choose(state, np.random.default_rng(0), None)
    assert check(state, rounded) == pytest.approx(alone + rounded.gain, rel=1e-7, abs=1e-9)
    assert rounded.gain <= exact.gain + 1e-9
    assert rounded.bound >= exact.gain - 1e-9


@for_each("oracle", [EmbeddingOracle(gap=0.0), RoundingOracle()])
@for_each(("rings", "runs"), [(1.9, False), (2.0, True)])
def test_rings_of_held_jobs_take_bandwidth(oracle, rings, runs):
    """Two places are left on each server, and the second job needs four."""
    jobs = [job("a"), job("b", least=4)]
    instance = cluster(jobs, network=star(2, rings * RING.bandwidth_bytes_per_s))
    state = SlotState(instance, 0, [1], np.zeros(2), held={0: (((0, 2), (1, 2)), (0, 2, 1, 2))})
    choice = oracle.choose(state, np.random.default_rng(0), None)
    assert bool(choice.workers) is runs
    check(state, choice)


@pytest.mark.parametrize("oracle", [EmbeddingOracle(gap=0.0), RoundingOracle()], ids=["embedding", "rounding"])
def test_gains_and_progress(oracle):
    """A finished job has nothing to gain; gains that are given count instead of utilities."""
    instance = instance_of("star", 1)
    done = np.array([job.minibatches for job in instance.jobs])
    state = fresh(instance)._replace(done=done)
    assert oracle.choose(state, np.random.default_rng(0), None) == NOTHING
    rows = {i: np.arange(job.max_workers + 1.0) * (i == 1) for i, job in enumerate(instance.jobs)}
    choice = oracle.choose(state._replace(gains=rows), np.random.default_rng(0), None)
    assert list(choice.workers) == [1]
    assert choice.gain == choice.bound == instance.jobs[1].max_workers
    away = oracle.choose(state._replace(gains=rows, active=[0, 2]), np.random.default_rng(0), None)
    assert away == NOTHING


@pytest.mark.parametrize("oracle", [EmbeddingOracle(), RoundingOracle()], ids=["embedding", "rounding"])
def test_without_time(oracle):
    """Answers fit, and their bounds hold; rounding still places somebody."""
    rng = np.random.default_rng(3)
    instance = random_instance(rng, jobs=40, slots=1, places=(4,) * 12, network="tree", min_workers=True)
    state = fresh(instance)
    reference = RoundingOracle().choose(state, rng, None)
    choice = oracle.choose(state, rng, 1e-9)
    check(state, choice)
    assert choice.bound >= reference.gain
    assert choice.gain > 0 or isinstance(oracle, EmbeddingOracle)


def test_same_seed_same_answer():
    state = fresh(instance_of("tree", 2))
    for oracle in (EmbeddingOracle(), RoundingOracle()):
        one, other = (oracle.choose(state, np.random.default_rng(5), None) for _ in range(2))
        assert one == other
