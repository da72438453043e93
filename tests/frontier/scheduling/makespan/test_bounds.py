"""Bounds on makespan and completion times: by hand, below the optimum of random instances, and tight on most."""

import itertools

import numpy as np
import pytest
from gang_brute_force import all_orders, gang_instance, random_gangs
from scheduling_brute_force import brute_force, random_instance
from volume import for_each, slow

from ddlopt.frontier.scheduling.makespan.bounds import completion_bound, makespan_bound, makespan_bound_slots
from ddlopt.frontier.scheduling.makespan.dual_feasible import counting, transformed
from ddlopt.frontier.scheduling.makespan.needs import needs, whole_resources
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.scheduling import SchedulingInstance


@for_each("capacity", [1, 2, 3, 7, 8, 12, 30])
def test_what_fits_together_still_does(capacity):
    found = transformed(np.arange(capacity + 1), capacity)
    assert found.sizes[0].tolist() == list(range(capacity + 1))
    assert found.capacity[0] == capacity
    for sizes, total in zip(found.sizes, found.capacity, strict=True):
        most = np.zeros(capacity + 1)  # the most that sizes within a capacity come to, each as often as wanted
        for size in range(1, capacity + 1):
            for filled in range(size, capacity + 1):
                most[filled] = max(most[filled], most[filled - size] + sizes[size])
        assert most[capacity] <= total
        assert (np.diff(sizes) >= 0).all()


def test_what_fits_together_once_still_does():
    rng = np.random.default_rng(0)
    for _ in range(100):
        capacity, count = int(rng.integers(2, 20)), int(rng.integers(2, 8))
        sizes, lengths = rng.integers(0, capacity + 1, count), rng.integers(1, 9, count)
        found = transformed(sizes, capacity, length=lengths)
        for subset in itertools.product((0, 1), repeat=count):
            if sizes @ subset <= capacity:
                assert (found.sizes @ subset <= found.capacity).all()


def test_a_thing_is_counted_that_keeps_out_all_large_ones():
    sizes, whole = counting(np.array([3, 3, 1, 2, 4]), 4, np.array([2, 3]))
    assert whole == 2
    assert sizes.tolist() == [1, 1, 1, 1, 2]  # beside size 3 only one of the two chosen ones fits


def test_functions_are_not_all_the_same():
    assert len(transformed(np.array([3, 5, 6, 9]), 13).sizes) > 5
    assert transformed(np.array([3, 5, 6, 9]), 13, most=0).sizes.tolist() == [[3, 5, 6, 9]]


BY_HAND = {
    "longest": ([(1, 9, 3), (1, 2)], 8, 12),
    "area": ([(1, 3), (1, 2), (1, 2), (1, 1)], 2, 4),
    "area-from-an-arrival": ([(4, 3, 10), (4, 3, 10), (1, 1)], 4, 16),
    "no-two-fit-together": ([(5, 4)] * 3, 8, 12),
    "two-fit-three-do-not": ([(3, 1)] * 5, 8, 3),
    "only-three-in-a-row": ([(1, 3)] * 5, 2, 9),
    "long-ones-meet-in-the-middle": ([(3, 5), (3, 5), (2, 5), (8, 4)], 8, 9),
    "wide-and-long": ([(3, 3)] * 5, 8, 9),
    "one-narrow-job-beside-nothing": ([(3, 4), (3, 1), (3, 5), (1, 6), (3, 4)], 3, 20),
    "neither-before-nor-after": ([(2, 2, 2, 4), (1, 3)], 2, 7),
    "deadlines-keep-the-front": ([(4, 2, 0, 3), (4, 2, 1, 5), (4, 2, 0)], 4, 6),
}


@for_each("name", BY_HAND)
def test_makespan_by_hand(name):
    jobs, gpus, optimum = BY_HAND[name]
    problem = gang_instance(jobs, gpus)
    assert makespan_bound_slots(problem) == optimum == all_orders(problem)[0]


def test_seconds_are_slots_of_their_length():
    problem = gang_instance([(5, 4)] * 3)
    finer = problem.model_copy(update={"slot_s": 0.3})
    assert makespan_bound_slots(finer) == 42  # 14 each, of which three in a row
    assert makespan_bound(finer) == pytest.approx(42 * 0.3)


def test_pauses_weaken_it():
    jobs = [(1, 3)] * 5
    assert makespan_bound_slots(gang_instance(jobs, 2)) == 9
    assert makespan_bound_slots(gang_instance(jobs, 2, preemptive=True)) == 8
    jobs = [(2, 2, 2, 4), (1, 3)]  # the second may pause while the first runs
    assert makespan_bound_slots(gang_instance(jobs, 2, preemptive=True)) == 5


def test_an_elastic_job_takes_its_most_efficient_width():
    timing = {
        "kind": "ring",
        "gradient_bytes": 1.0,
        "bandwidth_bytes_per_s": 2.0,
        "forward_s_per_sample": 1.0,
    }  # mini-batches a second: 1, 4/3, 9/5 at widths 1, 2, 3, so that one worker does most by itself
    jobs = [{"name": f"j{n}", "max_workers": 3, "minibatches": 12, "timing": timing} for n in range(3)]
    data = {"name": "elastic", "slots": 40, "slot_s": 1.0, "servers": [{"capacity": {"gpu": 3}}], "jobs": jobs}
    problem = SchedulingInstance.from_data(data | {"objective": "makespan"})
    assert makespan_bound_slots(problem) == 12
    alone = SchedulingInstance.from_data(data | {"objective": "makespan", "jobs": jobs[:1]})
    assert makespan_bound_slots(alone) == 7  # 12 / (9/5), rounded up


def test_contention_leaves_the_best_place():
    contention = {"between_servers_bytes_per_s": 1.0, "within_server_bytes_per_s": 4.0, "server_overhead_s": 0.5}
    ring = {"kind": "ring", "gradient_bytes": 1.0, "bandwidth_bytes_per_s": 9.0, "forward_s_per_sample": 1.0}
    job = {"name": "j", "min_workers": 2, "max_workers": 2, "minibatches": 20, "timing": ring}
    data = {
        "name": "contended",
        "slots": 99,
        "slot_s": 1.0,
        "servers": [{"count": 2, "capacity": {"gpu": 2}}],
        "contention": contention,
        "jobs": [job],
        "objective": "makespan",
        "preemptive": False,
    }
    whole = SchedulingInstance.from_data(data)
    assert makespan_bound_slots(whole) == 18  # 10 iterations of 1 + 1/4 + 1/2 s on one server
    split = SchedulingInstance.from_data(data | {"servers": [{"count": 2, "capacity": {"gpu": 1}}]})
    assert makespan_bound_slots(split) == 30  # 10 iterations of 1 + 1 + 2/2 s on two


def test_the_scarcest_resource_counts():
    jobs = [
        {"name": f"j{n}", "max_workers": 1, "minibatches": 4, "timing": {**RING}, "demand": {"gpu": 1, "cpu": cpu}}
        for n, cpu in enumerate((2.5, 2.5, 2.5, 0.5))
    ]
    data = {"name": "cpus", "slots": 40, "slot_s": 1.0, "jobs": jobs, "objective": "makespan"}
    problem = SchedulingInstance.from_data(data | {"servers": [{"capacity": {"gpu": 8, "cpu": 4}}]})
    assert makespan_bound_slots(problem) == 12
    cpus = whole_resources(problem)[0]
    assert cpus.per_worker.tolist() == [5, 5, 5, 1]
    assert cpus.capacity == 8


RING = {"kind": "ring", "gradient_bytes": 0, "bandwidth_bytes_per_s": 1, "forward_s_per_sample": 1}


def test_amounts_that_are_not_whole_are_rounded_down():
    thirds = [{"name": n, "max_workers": 3, "minibatches": 3, "timing": RING, "demand": {"gpu": 1 / 3}} for n in "ab"]
    data = {"name": "thirds", "slots": 9, "slot_s": 1.0, "jobs": thirds, "objective": "makespan"}
    problem = SchedulingInstance.from_data(data | {"servers": [{"capacity": {"gpu": 1}}]})
    (gpus,) = whole_resources(problem)
    assert (gpus.per_worker * 3 <= gpus.capacity).all()
    assert (gpus.per_worker * 4 > gpus.capacity).all()
    assert makespan_bound_slots(problem) == 2


@pytest.mark.parametrize("cases", [60, slow(200)])
def test_random_gangs_are_bounded_and_mostly_tight(cases):
    rng = np.random.default_rng(1)
    tight = solvable = 0
    for case in range(cases):
        problem = random_gangs(rng, gpus=int(rng.integers(2, 9)), arrivals=case % 2 == 0, deadlines=case % 4 == 0)
        optimum, _ = all_orders(problem)
        try:
            found = makespan_bound_slots(problem)
        except InfeasibleError:
            assert optimum is None
            continue
        if optimum is not None:
            assert found <= optimum
            solvable += 1
            tight += found == optimum
    assert tight >= 0.9 * solvable > 0.75 * cases  # areas and lengths alone: about half


@pytest.mark.parametrize("cases", [50, slow(150)])
def test_random_completion_times_are_bounded_and_mostly_near(cases):
    rng = np.random.default_rng(2)
    ratios = []
    for case in range(cases):
        gpus, arrivals = int(rng.integers(1, 9)), case % 2 == 0
        problem = random_gangs(rng, gpus=gpus, arrivals=arrivals, weights=True, objective="completion")
        _, optimum = all_orders(problem)
        found = completion_bound(problem)
        assert found <= optimum * (1 + 1e-9)
        ratios.append(found / optimum)
    assert np.mean(ratios) > 0.89


def test_one_gpu_without_arrivals_is_ordered_by_weight():
    problem = gang_instance(
        [(1, 5, 0, None, 1.0), (1, 1, 0, None, 2.0), (1, 3, 0, None, 3.0)], 1, objective="completion"
    )
    assert completion_bound(problem) == 2 * 1 + 3 * 4 + 1 * 9 == all_orders(problem)[1]


def test_completion_is_at_least_everybodys_own_time():
    problem = gang_instance([(1, 7, 5, None, 2.0), (1, 3)], 8, objective="completion")
    assert completion_bound(problem) == 17.0


@pytest.mark.parametrize("contention", [False, True])
@pytest.mark.parametrize("objective", ["makespan", "completion"])
def test_random_instances_of_all_kinds_are_bounded(objective, contention):
    rng = np.random.default_rng(3)
    bound = makespan_bound if objective == "makespan" else completion_bound
    proven = 0
    for case in range(50):
        problem = random_instance(
            rng,
            slots=4,
            places=((2, 2), (4,), (3,))[case % 3],
            objective=objective,
            deadlines=case % 2 == 0,
            min_workers=True,
            uneven=case % 3 > 0,
            latency=True,
            network="star" if case % 6 == 3 and not contention else None,
            contention=contention,
            preemptive=case % 4 < 2,
        )
        optimum = brute_force(problem)
        try:
            found = bound(problem)
        except InfeasibleError:
            assert optimum is None
            continue
        if optimum is not None:
            assert found <= optimum.objective * (1 + 1e-9)
            proven += found >= optimum.objective * (1 - 1e-6)
    assert proven >= 20


def test_what_cannot_be_finished_is_said():
    with pytest.raises(InfeasibleError, match=r"jobs\[1\] 'gang-1' takes 5 slots at least, but there are 4"):
        needs(gang_instance([(1, 1), (1, 5, 2, 6)]))
    with pytest.raises(InfeasibleError, match="takes 12 slots at least, but there are 11"):
        makespan_bound(gang_instance([(5, 4)] * 3, slots=11))
    assert makespan_bound(gang_instance([(5, 4)] * 3, slots=12)) == 12


def test_many_jobs_take_a_moment():
    rng = np.random.default_rng(4)
    jobs = [(int(2 ** rng.integers(0, 4)), int(rng.integers(1, 200)), int(rng.integers(0, 3000))) for _ in range(4000)]
    problem = gang_instance(jobs, 64, slots=30_000)
    area = sum(width * length for width, length, _ in jobs)
    assert makespan_bound_slots(problem) >= area / 64
    assert completion_bound(problem) >= sum(length for _, length, _ in jobs)
