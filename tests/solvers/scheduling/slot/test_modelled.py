"""The model of one slot as an oracle: that answers fit, are the best, and know of jobs that are held."""

import numpy as np
import pytest
from scheduling_brute_force import UTILITIES, brute_force, random_instance
from slot_cases import RING, cluster, job, star
from volume import for_each, seeds

from ddlopt.models.scheduling import Run, Schedule, evaluate
from ddlopt.models.scheduling.formulations.slot_embedding.slot_embedding import SlotEmbedding
from ddlopt.models.scheduling.formulations.slot_embedding.widths import width_gains
from ddlopt.solvers.scheduling.slot.modelled import slot_problem
from ddlopt.solvers.scheduling.slot.packing import Place
from ddlopt.solvers.scheduling.slot.worth import Gains

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


def instance_of(name, seed):
    rng = np.random.default_rng([seed, *name.encode()])
    return random_instance(rng, jobs=3, slots=1, utilities=tuple(UTILITIES), latency=seed % 2 == 0, **CLUSTERS[name])


def ask(instance, held=None, time_s=None, rows=None):
    """The best choice of the jobs that are not held, by what their utilities grow by or by ``rows`` of gains."""
    held = held or {}
    jobs = [i for i in range(len(instance.jobs)) if i not in held]
    mine = [width_gains(instance, i) if rows is None else rows[i] for i in jobs]
    starts = np.concatenate(([0], np.cumsum([len(row) for row in mine])))
    problem = slot_problem(instance, Gains(np.array(jobs), starts, np.concatenate(mine)), held)
    return None if problem is None else problem.solve(SlotEmbedding, time_s, 0)


def check(instance, places):
    """Places fit; what they are worth."""
    runs = tuple(
        Run(job=job, start=0, slots=1, workers=place.workers, ring=place.ring) for job, place in places.items()
    )
    evaluation = evaluate(instance, Schedule(instance=instance.name, runs=runs))
    assert evaluation.violations == ()
    return float(evaluation.objective)


@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize("seed", SEEDS)
def test_against_trying_everything(name, seed):
    instance = instance_of(name, seed)
    best = pytest.approx(brute_force(instance).objective, rel=1e-4, abs=1e-9)
    found = ask(instance)
    if found is None:
        assert best == 0.0
        return
    assert check(instance, found.choice) == pytest.approx(found.gain, rel=1e-9, abs=1e-12)
    assert found.gain == best
    assert found.bound == best


@pytest.mark.parametrize("name", ["star", "tree", "mesh", "powered-star"])
@pytest.mark.parametrize("seed", SEEDS)
def test_next_to_jobs_that_are_held(name, seed):
    """What they take is taken: the optimum has the held job just so, and the others in their best way."""
    instance = instance_of(name, seed)
    whole = ask(instance)
    if whole is None or not whole.choice:
        return
    held = dict([min(whole.choice.items())])
    alone, found = check(instance, held), ask(instance, held)
    gain, choice = (0.0, {}) if found is None else (found.gain, found.choice)
    assert check(instance, held | choice) == pytest.approx(alone + gain, rel=1e-7, abs=1e-9)
    assert alone + gain == pytest.approx(whole.gain, rel=1e-4, abs=1e-9)


@for_each(("rings", "runs"), [(1.9, False), (2.0, True)])
def test_rings_of_held_jobs_take_bandwidth(rings, runs):
    """Two places are left on each server, and the second job needs four."""
    jobs = [job("a"), job("b", least=4)]
    instance = cluster(jobs, network=star(2, rings * RING.bandwidth_bytes_per_s))
    held = {0: Place(((0, 2), (1, 2)), (0, 2, 1, 2))}
    found = ask(instance, held)
    assert bool(found.choice) is runs
    check(instance, held | found.choice)


def test_gains_that_are_given_count():
    """Of jobs that gain nothing there is no problem."""
    instance = instance_of("star", 1)
    rows = [np.arange(job.max_workers + 1.0) * (i == 1) for i, job in enumerate(instance.jobs)]
    found = ask(instance, rows=rows)
    assert list(found.choice) == [1]
    assert found.gain == found.bound == instance.jobs[1].max_workers
    assert ask(instance, rows=[0 * row for row in rows]) is None


def test_without_time():
    """Nobody runs, and the bound holds."""
    instance = instance_of("star", 1)
    found = ask(instance, time_s=1e-9)
    assert (found.choice, found.gain) == ({}, 0.0)
    assert found.bound >= ask(instance).gain > 0
