"""Bounds without the frontier: never better than trying everything, and the figures that they are made of."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from gang_brute_force import gang_instance
from scheduling_brute_force import brute_force, choices, job_rates, random_instance, slot_energy_j
from volume import for_each, slow

from ddlopt.models.errors import InfeasibleError
from ddlopt.models.scheduling import (
    AllOrNothing,
    Capped,
    Fair,
    Job,
    Network,
    RingTiming,
    SchedulingInstance,
    ServerGroup,
)
from ddlopt.models.scheduling import bounds as bounds_module
from ddlopt.models.scheduling.bounds import bound
from ddlopt.models.scheduling.fastest import fastest_rates, least_energy_j, upper_envelope
from ddlopt.models.scheduling.times.works import Works

LINEAR = RingTiming(gradient_bytes=0, bandwidth_bytes_per_s=1, forward_s_per_sample=1)
FEATURES = {
    "plain": {},
    "windows": {"deadlines": True, "min_workers": True, "latency": True, "pollux": True},
    "all or nothing": {"utilities": ("all_or_nothing",), "deadlines": True},
    "uneven": {"places": (3, 2), "slots": 2, "uneven": True},
    "star": {"places": (2, 2), "slots": 2, "network": "star"},
    "energy": {"places": (2, 1), "slots": 2, "energy": True},
    "contention": {"places": (2, 2), "slots": 2, "contention": True},
    "in one piece": {"preemptive": False, "min_workers": True},
    "max-min": {"objective": "max_min", "deadlines": True},
    "max-min, uneven": {"objective": "max_min", "uneven": True, "min_workers": True},
    "completion": {"objective": "completion", "min_workers": True, "uneven": True},
    "makespan": {"objective": "makespan", "latency": True, "uneven": True},
    "fairness": {"objective": "finish_time_fairness"},
}


@for_each("cases", [4, slow(30)])
@for_each("features", FEATURES)
def test_no_schedule_is_better(features, cases):
    rng = np.random.default_rng(len(features))
    ratios = []
    for _ in range(cases):
        instance = random_instance(rng, **FEATURES[features])
        found = brute_force(instance)
        try:
            told = bound(instance)
        except InfeasibleError:
            assert found is None
            continue
        if found is None:
            continue
        best, sign = float(found.objective), 1 if instance.sense == "maximize" else -1
        assert sign * told >= sign * best - 1e-9 * abs(best)
        if best and told:
            ratios.append(min(best / told, told / best))
    # It is no bound of another problem, either.
    assert np.median(ratios) > 0.5


def test_the_pool_is_shared_by_all_slots():
    """Three jobs that want all of both slots of one server: the two that are worth most for their work fill them."""
    timing = LINEAR

    def made(**fields):
        jobs = tuple(
            Job(name=str(value), max_workers=2, timing=timing, minibatches=120, utility=Capped(value=value))
            for value in (3, 1, 2)
        )
        servers = (ServerGroup(capacity={"gpu": 2}),)
        return SchedulingInstance(name="x", slots=2, slot_s=60, servers=servers, jobs=jobs, **fields)

    assert bound(made()) == pytest.approx(5)
    assert bound(made(objective="max_min")) == pytest.approx(2 / 3)
    late = tuple(job.model_copy(update={"arrival": 1}) for job in made().jobs)
    assert bound(made().changed(slots=3, jobs=late)) == pytest.approx(5)
    worker = (ServerGroup(capacity={"gpu": 2}, worker_w=1.0),)
    # A job takes 120 s of a worker: at 0.02 a joule the one of value 2 is not worth its energy.
    assert bound(made().changed(servers=worker, energy_price_per_j=0.02)) == pytest.approx(3 - 2.4)


def test_the_smallest_part_is_no_larger_than_what_each_job_can_do_alone():
    jobs = tuple(
        Job(name=str(deadline), max_workers=1, timing=LINEAR, minibatches=4, deadline=deadline) for deadline in (2, 4)
    )
    servers = (ServerGroup(capacity={"gpu": 9}),)
    asked = SchedulingInstance(name="x", slots=4, slot_s=1, servers=servers, jobs=jobs, objective="max_min")
    assert bound(asked) == pytest.approx(1 / 2)


AREAS = {
    "longest": ([(1, 9, 3), (1, 2)], 8, 12),
    "area": ([(1, 3), (1, 2), (1, 2), (1, 1)], 2, 4),
    "area-from-an-arrival": ([(4, 3, 10), (4, 3, 10), (1, 1)], 4, 16),
}


@for_each("name", AREAS)
def test_a_makespan_is_at_least_the_longest_job_and_the_area(name):
    jobs, gpus, slots = AREAS[name]
    asked = gang_instance(jobs, gpus)
    assert bound(asked) == slots * asked.slot_s


def test_an_elastic_job_is_done_no_sooner_than_at_its_largest_width():
    job = Job(name="a", max_workers=2, timing=LINEAR, minibatches=8)
    servers = (ServerGroup(capacity={"gpu": 4}),)
    asked = SchedulingInstance(name="x", slots=9, slot_s=1, servers=servers, jobs=(job,), objective="completion")
    assert bound(asked) == 4


def test_what_is_left_of_a_server_holds_no_part_of_a_worker():
    """Three jobs of two GPUs, two servers of three: two at once, though there are six GPUs."""
    jobs = tuple(
        Job(name=name, max_workers=1, timing=LINEAR, minibatches=2, demand={"gpu": 2.0}) for name in ("a", "b", "c")
    )
    servers = (ServerGroup(count=2, capacity={"gpu": 3}),)
    asked = SchedulingInstance(name="x", slots=9, slot_s=1, servers=servers, jobs=jobs, objective="makespan")
    assert bound(asked) == 3


def test_a_job_may_need_all_of_its_window_and_no_more():
    assert bound(gang_instance([(1, 4, 0, 4)])) == 4 * gang_instance([(1, 4, 0, 4)]).slot_s
    with pytest.raises(InfeasibleError, match=r"jobs\[1\] 'gang-1' takes 5 slots at least, but there are 4"):
        bound(gang_instance([(1, 1), (1, 5, 2, 6)]))
    with pytest.raises(InfeasibleError, match="takes 6 slots at least, but there are 5"):
        bound(gang_instance([(1, 3)] * 4, 2, slots=5))


def test_jobs_take_whole_slots():
    works = Works(gang_instance([(2, 3), (2, 2), (1, 1, 4)], 2), Fraction)
    assert works.slots == [3, 2, 1]


def test_where_jobs_count_whole_a_bound_is_a_sum_of_their_values():
    asked = random_instance(np.random.default_rng(2), jobs=3, utilities=("all_or_nothing",))

    def with_values(*values, **changed):
        jobs = (
            job.model_copy(update={"utility": AllOrNothing(value=value)})
            for job, value in zip(asked.jobs, values, strict=True)
        )
        return asked.model_copy(update={"jobs": tuple(jobs), **changed})

    assert bounds_module.on_grid(with_values(1, 1, 1), 2.75) == pytest.approx(2, rel=1e-11)
    assert bounds_module.on_grid(with_values(1.5, 3, 1.5), 5.9) == pytest.approx(4.5, rel=1e-11)
    assert bounds_module.on_grid(with_values(0.1, 0.1, 0.1), 0.1 + 0.1) >= 0.1 + 0.1
    assert bounds_module.on_grid(with_values(1, 1, 1, energy_price_per_j=1.0), 2.75) == 2.75
    assert bounds_module.on_grid(random_instance(np.random.default_rng(2)), 2.75) == 2.75
    # Values count in no other objective, and the smallest part done is no sum of them.
    assert bounds_module.on_grid(with_values(5, 5, 5, objective="max_min"), 0.75) == 0.75


def test_jobs_that_cannot_finish_are_worth_nothing():
    timing = RingTiming(gradient_bytes=0, bandwidth_bytes_per_s=1, forward_s_per_sample=1)
    jobs = [
        Job(name="a", max_workers=2, timing=timing, minibatches=241, utility=AllOrNothing(value=5)),
        Job(name="b", max_workers=2, timing=timing, minibatches=240, utility=AllOrNothing(value=2)),
    ]
    servers = (ServerGroup(capacity={"gpu": 2}),)

    def made(jobs):
        return SchedulingInstance(name="x", slots=2, slot_s=60, servers=servers, jobs=tuple(jobs))

    assert bound(made(jobs)) == pytest.approx(2.0)
    assert bound(made(jobs[:1])) == 0.0
    assert bound(made([jobs[0].model_copy(update={"utility": Capped(value=5)})])) == pytest.approx(5 * 240 / 241)


def test_alpha_zero_is_linear():
    timing = RingTiming(gradient_bytes=0, bandwidth_bytes_per_s=1, forward_s_per_sample=1)
    job = Job(name="a", max_workers=1, timing=timing, minibatches=240, utility=Fair(alpha=0.0, value=3))
    instance = SchedulingInstance(
        name="x", slots=2, slot_s=60, servers=(ServerGroup(capacity={"gpu": 1}),), jobs=(job,)
    )
    assert bound(instance) == pytest.approx(1.5)


def test_fastest_rates_and_least_energy_are_those_of_the_best_placement():
    rng = np.random.default_rng(5)
    for _ in range(20):
        instance = random_instance(rng, jobs=1, places=(3, 2), contention=True, uneven=True)
        best = dict.fromkeys(instance.jobs[0].widths, 0.0)
        for choice, _ in choices(instance, 0):
            taken = [count * instance.demand[0, 0] for _, count in choice.workers]
            if all(amount <= instance.capacity[s, 0] for amount, (s, _) in zip(taken, choice.workers, strict=True)):
                best[choice.width] = max(best[choice.width], job_rates(instance, [choice])[0])
        assert fastest_rates(instance, 0) == pytest.approx(list(best.values()))
    for _ in range(20):
        instance = random_instance(rng, jobs=2, places=(3, 2), energy=True, uneven=True)
        least = least_energy_j(instance)
        pairs = itertools.product(*([None, *(one for one, _ in choices(instance, job))] for job in (0, 1)))
        joules = [
            slot_energy_j(instance, pair) / sum(one.width for one in pair if one)
            for pair in pairs
            if any(pair) and _fits(instance, pair)
        ]
        assert least <= min(joules) * (1 + 1e-12)
        assert least > 0


def _fits(instance, pair):
    used = np.zeros_like(instance.capacity)
    for job, choice in enumerate(pair):
        for server, count in choice.workers if choice else ():
            used[server] += count * instance.demand[job]
    return (used <= instance.capacity).all()


def test_shared_bandwidth_may_be_all_of_the_widest_link():
    timing = RingTiming(gradient_bytes=1e9, bandwidth_bytes_per_s=1e9, forward_s_per_sample=1)
    instance = SchedulingInstance(
        name="x",
        slots=1,
        slot_s=60,
        servers=(ServerGroup(count=2, capacity={"gpu": 2}),),
        network=Network(links=((0, 1, 4e9),)),
        jobs=(Job(name="a", max_workers=3, timing=timing, minibatches=1),),
        bandwidth="shared",
    )
    assert fastest_rates(instance, 0) == pytest.approx([60, 120 / 1.25, 180 / (1 + 1 / 3)])


def test_upper_envelope_has_all_points_below():
    rng = np.random.default_rng(2)
    for _ in range(200):
        widths = np.cumsum(np.concatenate(([0], rng.integers(1, 4, rng.integers(1, 9)))))
        rates = np.concatenate(([0.0], rng.uniform(0.1, 3, len(widths) - 1)))
        corners = upper_envelope(widths, rates)
        slopes = np.diff(rates[corners]) / np.diff(widths[corners])
        assert (np.diff(slopes) < 0).all()
        assert (slopes > 0).all()
        assert (np.interp(widths, widths[corners], rates[corners]) >= rates - 1e-12).all()
