"""The model of one slot as an oracle: that answers fit, are the best, and know of jobs that are held."""

import numpy as np
import pytest
from scheduling_brute_force import UTILITIES, brute_force, random_instance
from slot_cases import RING, cluster, job, star
from volume import for_each, seeds

from ddlopt.models.scheduling import Run, Schedule, evaluate
from ddlopt.solvers.scheduling.slot.embedding_oracles import NOTHING, EmbeddingOracle, SlotState

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
ORACLE = EmbeddingOracle(gap=0.0)


def instance_of(name, seed):
    rng = np.random.default_rng([seed, *name.encode()])
    return random_instance(rng, jobs=3, slots=1, utilities=tuple(UTILITIES), latency=seed % 2 == 0, **CLUSTERS[name])


def fresh(instance):
    """Nothing is done yet, and all that are there may run."""
    return SlotState(instance, 0, list(range(len(instance.jobs))), np.zeros(len(instance.jobs)))


def ask(state, time_s=None):
    return ORACLE.choose(state, np.random.default_rng(0), time_s)


def check(state, choice):
    """The choice fits, gains what it says, and not more than its bound."""
    held = {job: there for job, (there, _) in state.held.items()}
    rings = {job: ring for job, (_, ring) in state.held.items()} | choice.rings
    runs = tuple(
        Run(job=job, start=state.slot, slots=1, workers=there, ring=rings.get(job, ()))
        for job, there in (held | choice.workers).items()
    )
    evaluation = evaluate(state.instance, Schedule(instance=state.instance.name, runs=runs))
    assert evaluation.violations == ()
    assert choice.bound is None or choice.gain <= choice.bound
    return float(evaluation.objective)


@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize("seed", SEEDS)
def test_against_trying_everything(name, seed):
    state = fresh(instance_of(name, seed))
    best = pytest.approx(brute_force(state.instance).objective, rel=1e-7, abs=1e-9)
    found = ask(state)
    assert check(state, found) == pytest.approx(found.gain, rel=1e-9, abs=1e-12)
    assert found.gain == best
    assert found.bound == best


@pytest.mark.parametrize("name", ["star", "tree", "mesh", "powered-star"])
@pytest.mark.parametrize("seed", SEEDS)
def test_next_to_jobs_that_are_held(name, seed):
    """What they take is taken: the optimum has the held job just so, and the others in their best way."""
    instance = instance_of(name, seed)
    whole = ask(fresh(instance))
    if not whole.workers:
        return
    job = min(whole.workers)
    held = {job: (whole.workers[job], whole.rings.get(job, ()))}
    others = [i for i in range(len(instance.jobs)) if i != job]
    state = SlotState(instance, 0, others, np.zeros(len(instance.jobs)), held=held)
    alone, found = check(state, NOTHING), ask(state)
    assert check(state, found) == pytest.approx(alone + found.gain, rel=1e-7, abs=1e-9)
    assert alone + found.gain == pytest.approx(whole.gain, rel=1e-7, abs=1e-9)


@for_each(("rings", "runs"), [(1.9, False), (2.0, True)])
def test_rings_of_held_jobs_take_bandwidth(rings, runs):
    """Two places are left on each server, and the second job needs four."""
    jobs = [job("a"), job("b", least=4)]
    instance = cluster(jobs, network=star(2, rings * RING.bandwidth_bytes_per_s))
    state = SlotState(instance, 0, [1], np.zeros(2), held={0: (((0, 2), (1, 2)), (0, 2, 1, 2))})
    choice = ask(state)
    assert bool(choice.workers) is runs
    check(state, choice)


def test_gains_and_progress():
    """A finished job has nothing to gain; gains that are given count instead of utilities."""
    instance = instance_of("star", 1)
    state = fresh(instance)._replace(done=np.array([job.minibatches for job in instance.jobs]))
    assert ask(state) == NOTHING
    rows = {i: np.arange(job.max_workers + 1.0) * (i == 1) for i, job in enumerate(instance.jobs)}
    choice = ask(state._replace(gains=rows))
    assert list(choice.workers) == [1]
    assert choice.gain == choice.bound == instance.jobs[1].max_workers
    assert ask(state._replace(gains=rows, active=[0, 2])) == NOTHING


def test_without_time():
    """Nobody runs, and the bound holds."""
    state = fresh(instance_of("star", 1))
    choice = ask(state, 1e-9)
    check(state, choice)
    assert choice.gain == 0
    assert choice.bound >= ask(state).gain > 0
