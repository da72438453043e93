"""The cluster as one pool: exact where it says so, a relaxation everywhere; and schedules made from widths."""

import itertools

import numpy as np
import pytest
from volume import for_each

from ddlopt.models.errors import SolverError
from ddlopt.models.scheduling import Contention, Job, Network, RingTiming, SchedulingInstance, ServerGroup, evaluate
from ddlopt.models.scheduling.pool import Placer, pool, schedule_of_places, schedule_of_widths

TIMING = RingTiming(gradient_bytes=1e8, bandwidth_bytes_per_s=1e9, forward_s_per_sample=0.1)


def instance(demands, capacities, slots=6, **changes):
    """One job for each demand, one server for each capacity; jobs as wide as fits."""
    servers = tuple(ServerGroup(capacity=capacity) for capacity in capacities)

    def room(demand):
        return sum(
            min(int(capacity.get(name, 0) / amount) for name, amount in demand.items()) for capacity in capacities
        )

    jobs = tuple(
        Job(name=f"{k}", max_workers=room(demand), timing=TIMING, minibatches=1e5, demand=demand)
        for k, demand in enumerate(demands)
    )
    return SchedulingInstance(
        **{"name": "pool", "slots": slots, "slot_s": 10.0, "servers": servers, "jobs": jobs, **changes}
    )


def placeable(asked, widths):
    """Whether any placement of the widths exists, by trying all."""

    def fits(job, free):
        if job == len(widths):
            return True
        for counts in itertools.product(range(widths[job] + 1), repeat=asked.server_count):
            left = free - np.outer(counts, asked.demand[job])
            if sum(counts) == widths[job] and (left >= -1e-9).all() and fits(job + 1, left):
                return True
        return False

    return fits(0, asked.capacity)


def all_widths(asked):
    return itertools.product(*(range(job.max_workers + 1) for job in asked.jobs))


GPU = {"gpu": 1.0}
CLUSTERS = {
    "equal": ([GPU] * 3, [{"gpu": 3.0}, {"gpu": 2.0}], True),
    "equal-of-two-kinds": ([{"gpu": 1.0, "cpu": 3.0}] * 2, [{"gpu": 4.0, "cpu": 7.0}, {"gpu": 2.0, "cpu": 16.0}], True),
    "equal-with-a-rest": ([{"gpu": 2.0}] * 2, [{"gpu": 3.0}, {"gpu": 5.0}], True),
    "one-server": ([GPU, {"gpu": 2.0}, {"gpu": 1.0, "cpu": 1.0}], [{"gpu": 4.0, "cpu": 2.0}], True),
    "unequal": ([GPU, {"gpu": 2.0}, {"gpu": 2.0}], [{"gpu": 3.0}, {"gpu": 3.0}], False),
    "unequal-kinds": (
        [GPU, {"gpu": 1.0, "cpu": 4.0}, {"gpu": 1.0, "cpu": 4.0}],
        [{"gpu": 2.0, "cpu": 6.0}, {"gpu": 2.0, "cpu": 6.0}],
        False,
    ),
}


@for_each("name", CLUSTERS)
def test_exact_means_that_what_fits_can_be_placed(name):
    demands, capacities, exact = CLUSTERS[name]
    asked = instance(demands, capacities)
    widths_fit = pool(asked)
    assert widths_fit.exact == exact
    assert widths_fit.demand.shape == (len(demands), len(widths_fit.capacity))
    unplaceable = 0
    for widths in all_widths(asked):
        fits = (widths_fit.demand.T @ widths <= widths_fit.capacity + 1e-9).all()
        can = placeable(asked, widths)
        assert fits or not can  # a relaxation in any case
        unplaceable += fits and not can
        if exact and fits:
            placed = Placer(asked).place(dict(enumerate(widths)))
            assert {job: sum(count for _, count in workers) for job, workers in placed.items()} == {
                job: width for job, width in enumerate(widths) if width
            }
    assert (unplaceable == 0) == exact


POWER = {"energy_price_per_j": 1e-6}


@for_each(
    ("changes", "exact"),
    [
        ({}, True),
        ({"network": Network(links=((0, 1, 1e9),))}, False),
        ({"contention": Contention(between_servers_bytes_per_s=1e9, within_server_bytes_per_s=1e9)}, False),
        ({"servers": (ServerGroup(count=2, capacity=GPU, idle_w=10),)}, True),  # energy has no price
        ({"servers": (ServerGroup(count=2, capacity=GPU, idle_w=10),), **POWER}, False),
        ({"servers": (ServerGroup(count=2, capacity=GPU, worker_w=10),), **POWER}, True),
        ({"servers": (ServerGroup(capacity=GPU, worker_w=10), ServerGroup(capacity=GPU)), **POWER}, False),
        ({"servers": (ServerGroup(capacity={"gpu": 2.0}, idle_w=10),), **POWER}, True),
    ],
)
def test_where_places_matter_the_pool_is_a_relaxation(changes, exact):
    assert pool(instance([GPU] * 2, [GPU] * 2, **changes)).exact == exact


def test_a_single_server_under_contention_is_no_pool():
    """Its ring has the bandwidth within a server there, not the job's own."""
    rules = Contention(between_servers_bytes_per_s=1e9, within_server_bytes_per_s=1e9)
    assert not pool(instance([GPU] * 2, [{"gpu": 4.0}], contention=rules)).exact


@for_each("name", [name for name, (_, _, exact) in CLUSTERS.items() if exact])
def test_widths_become_a_schedule(name):
    demands, capacities, _ = CLUSTERS[name]
    rng = np.random.default_rng(3)
    asked = instance(demands, capacities, slots=30)
    possible = [widths for widths in all_widths(asked) if placeable(asked, widths)]
    table = []
    for _ in range(30):
        stays = table and rng.random() < 0.3
        table.append(table[-1] if stays else possible[rng.integers(len(possible))])
    schedule = schedule_of_widths(asked, [dict(enumerate(widths)) for widths in table])
    assert evaluate(asked, schedule).violations == ()
    got = np.zeros((30, len(asked.jobs)), dtype=int)
    for run in schedule.runs:
        got[run.start : run.end, run.job] += run.width
    assert got.tolist() == [list(widths) for widths in table]
    # A job moves only when its width changes, so there are as many runs as times of equal width.
    expected = sum(sum(1 for width, _ in itertools.groupby(row) if width) for row in np.array(table).T.tolist())
    assert len(schedule.runs) == expected


def test_widths_that_do_not_fit_are_refused():
    asked = instance([GPU] * 2, [{"gpu": 2.0}, {"gpu": 1.0}])
    placer = Placer(asked)
    placer.place({0: 2})
    with pytest.raises(SolverError, match="2 workers of job 1 do not fit beside the others"):
        placer.place({0: 2, 1: 2})
    assert placer.place({0: 2, 1: 1}) == {0: ((0, 2),), 1: ((1, 1),)}  # nothing was taken
    one = instance([GPU, {"gpu": 2.0}], [{"gpu": 3.0}])
    with pytest.raises(SolverError, match="do not fit"):
        Placer(one).place({0: 2, 1: 1})


def test_a_job_on_one_server_takes_the_fullest_that_holds_it():
    asked = instance([GPU] * 3, [{"gpu": 4.0}, {"gpu": 2.0}, {"gpu": 3.0}])
    placed = Placer(asked).place({0: 4, 1: 2, 2: 1})
    assert placed == {0: ((0, 4),), 1: ((1, 2),), 2: ((2, 1),)}
    assert Placer(asked).place({0: 5}) == {0: ((0, 4), (2, 1))}
    unequal = instance([GPU, {"gpu": 2.0}], [{"gpu": 7.0}, {"gpu": 2.0}, {"gpu": 3.0}])
    assert Placer(unequal).place({0: 2, 1: 3}) == {0: ((1, 2),), 1: ((0, 3),)}
    assert Placer(unequal).place({1: 4}) == {1: ((0, 3), (1, 1))}


def test_equal_neighbours_become_one_run():
    asked = instance([GPU], [GPU, GPU])
    here, there = {0: ((0, 1),)}, {0: ((1, 1),)}
    schedule = schedule_of_places(asked, [here, here, there, {}, there, there])
    assert [(run.start, run.slots, run.workers[0][0]) for run in schedule.runs] == [(0, 2, 0), (2, 1, 1), (4, 2, 1)]
