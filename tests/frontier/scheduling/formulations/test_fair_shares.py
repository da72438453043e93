"""The relaxation to shares of time: linear programs, closed forms, brute force, and bounds that trust no solver."""

import numpy as np
import pytest
from scheduling_brute_force import CONCAVE, UTILITIES, brute_force, random_instance
from scipy.optimize import linprog
from volume import for_each, slow

from ddlopt.frontier.scheduling.formulations.fair_shares import Columns, FairShares
from ddlopt.frontier.scheduling.prices.lagrangian import lagrangian_bound
from ddlopt.models.errors import SolverError
from ddlopt.models.scheduling import AllOrNothing, Fair, Job, PolluxTiming, RingTiming, SchedulingInstance, ServerGroup
from ddlopt.models.scheduling.pool import pool
from ddlopt.solvers.backends.convex import Convex
from ddlopt.solvers.contracts import Limits, Status

MODEL = FairShares()
LINEAR = PolluxTiming(compute_s=1.0)
"""As many mini-batches a second as workers."""


def solved(instance):
    """(problem, value, bound)."""
    problem = MODEL.problem(instance)
    outcome = Convex().solve(problem, Limits())
    assert outcome.status is Status.OPTIMAL
    return problem, outcome.value, MODEL.bound(problem, instance)


def cluster(*jobs, slots=10, gpus=4.0, **changes):
    data = {
        "name": "cluster",
        "slots": slots,
        "slot_s": 1.0,
        "servers": (ServerGroup(capacity={"gpu": gpus}),),
        "jobs": jobs,
    }
    return SchedulingInstance(**{**data, **changes})


def linear_program(instance):
    """The linear relaxation slot by slot with all widths, for capped utilities or ``max_min``; its value."""
    cells = [
        (i, t, w)
        for i, job in enumerate(instance.jobs)
        for t in range(job.arrival, instance.last_slot(i))
        for w in job.widths
    ]
    jobs, columns = len(instance.jobs), len(cells)
    fair = instance.objective == "max_min"
    room = pool(instance)
    rows, sides = [], []
    for t in range(instance.slots):
        for r, capacity in enumerate(room.capacity):
            rows.append([w * room.demand[i, r] * (s == t) for i, s, w in cells] + [0.0] * (jobs + 1))
            sides.append(capacity)
        for i in range(jobs):
            rows.append([float((j, s) == (i, t)) for j, s, w in cells] + [0.0] * (jobs + 1))
            sides.append(1.0)
    for i, job in enumerate(instance.jobs):
        done = [-(j == i) * instance.progress(i, w) / job.minibatches for j, s, w in cells]
        part = [float(j == i) for j in range(jobs)]
        rows += [done + part + [0.0], [0.0] * columns + [-one for one in part] + [1.0 * fair]]
        sides += [0.0, 0.0]
    worth = [0.0] * jobs if fair else [job.utility.value for job in instance.jobs]
    cost = [0.0] * columns + worth + [1.0 * fair]
    answer = linprog(-np.array(cost), A_ub=np.array(rows), b_ub=sides, bounds=(0, 1))
    assert answer.status == 0
    return -answer.fun


@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"deadlines": True, "min_workers": True, "latency": True},
        {"objective": "max_min", "deadlines": True},
        {"uneven": True, "places": (3, 2), "pollux": True},
    ],
)
def test_it_is_the_linear_relaxation_of_linear_utilities(shape):
    """Widths at the corners and slots between events lose nothing."""
    rng = np.random.default_rng(0)
    for _ in range(8):
        instance = random_instance(rng, jobs=5, slots=6, **{"places": (5,), "utilities": ("capped",), **shape})
        _, value, bound = solved(instance)
        assert value == pytest.approx(linear_program(instance), rel=1e-6)
        assert bound == pytest.approx(value, rel=1e-6)


def test_two_jobs_share_by_their_slopes():
    """Proportional fairness with weights 1 and 2 on 4 GPUs for 10 s, none of which can finish: 1 : 2."""
    one = Job(name="a", max_workers=4, timing=LINEAR, minibatches=1000, utility=Fair(alpha=1, epsilon=1e-4, value=1))
    two = Job(name="b", max_workers=4, timing=LINEAR, minibatches=1000, utility=Fair(alpha=1, epsilon=1e-4, value=2))
    instance = cluster(one, two)
    problem, value, bound = solved(instance)
    parts = problem.var_dict["part"].value
    # Marginals v / (epsilon + p) are equal.
    assert parts == pytest.approx([(0.04 + 2e-4) / 3 - 1e-4, 2 * (0.04 + 2e-4) / 3 - 1e-4], rel=1e-4)
    assert bound == pytest.approx(value, rel=1e-6)
    price = 1 / (1e-4 + parts[0]) / 1000
    assert MODEL.prices(problem, instance) == pytest.approx(np.full((10, 1), price), rel=1e-4)


def test_shares_are_what_the_cluster_holds():
    rng = np.random.default_rng(1)
    instance = random_instance(rng, jobs=8, slots=8, places=(5,), deadlines=True)
    problem, _, _ = solved(instance)
    shares = MODEL.read(problem, instance)
    used, ran, done = np.zeros(8), np.zeros((8, 8)), np.zeros(8)
    for share in shares:
        assert share.width in instance.jobs[share.job].widths
        assert instance.jobs[share.job].arrival <= share.start < share.end <= instance.last_slot(share.job)
        used[share.start : share.end] += share.share * share.width
        ran[share.job, share.start : share.end] += share.share
        done[share.job] += share.share * (share.end - share.start) * instance.progress(share.job, share.width)
    assert (used <= 5 + 1e-5).all()
    assert used.max() > 4.9
    assert (ran <= 1 + 1e-5).all()
    assert done / [job.minibatches for job in instance.jobs] == pytest.approx(problem.var_dict["part"].value, abs=1e-4)


SHAPES = {
    "plain": {},
    "deadlines": {"deadlines": True, "min_workers": True, "latency": True, "pollux": True},
    "all": {"utilities": (*CONCAVE, "all_or_nothing")},
    "star": {"places": (2, 2), "network": "star"},
    "contention": {"places": (2, 2), "contention": True},
    "energy": {"places": (3, 2), "energy": True, "uneven": True},
    "max_min": {"objective": "max_min"},
    "one-piece": {"preemptive": False},
}


@pytest.mark.parametrize("cases", [2, slow(12)])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_schedule_beats_the_bound(shape, cases):
    rng, sharp = np.random.default_rng(2), 0
    for _ in range(cases):
        instance = random_instance(rng, **SHAPES[shape])
        problem, value, bound = solved(instance)
        best = brute_force(instance).objective
        assert best <= bound + 1e-9
        assert bound <= value * (1 + 1e-5) + 1e-6  # it also knows that no slot does more than is wanted
        assert best <= lagrangian_bound(instance).bound + 1e-9
        sharp += best >= 0.9 * bound
        for dual in problem.constraints[0].dual_variables:
            if dual.value is not None:
                dual.save_value(dual.value * rng.uniform(0, 3, np.shape(dual.value)) + rng.uniform(0, 0.1))
        assert MODEL.bound(problem, instance) >= best - 1e-9  # any prices give a bound
        assert MODEL.bound(MODEL.problem(instance), instance) >= best - 1e-9  # none at all do, too
    assert sharp >= cases / 4


def test_hopeless_jobs_are_worth_nothing():
    hopeless = Job(name="a", max_workers=4, timing=LINEAR, minibatches=41, utility=AllOrNothing(value=9))
    just = Job(name="b", max_workers=4, timing=LINEAR, minibatches=40, utility=AllOrNothing(value=5))
    for jobs, expected in (((hopeless, just), 5), ((hopeless,), 0)):
        _, value, bound = solved(cluster(*jobs))
        assert value == pytest.approx(expected, abs=1e-6)
        assert bound == pytest.approx(expected, abs=1e-6)


def test_columns():
    """Three intervals, of which the first two are in a's window; only the second is scarce."""
    ring = RingTiming(gradient_bytes=1e8, bandwidth_bytes_per_s=1e9, forward_s_per_sample=0.1)
    instance = cluster(
        Job(name="a", max_workers=4, timing=ring, minibatches=100, deadline=6),
        Job(name="b", arrival=2, min_workers=2, max_workers=3, timing=LINEAR, minibatches=10),
    )
    columns = Columns(instance)
    assert columns.intervals == [(0, 2), (2, 6), (6, 10)]
    found = [(one.job, one.width, one.start, one.end) for one in columns.shares]
    # Two workers of a are no faster than one: 1 and 4 are its corners; b's progress is linear, and 3 is enough.
    assert found == [(0, 1, 0, 2), (0, 4, 0, 2), (0, 1, 2, 6), (0, 4, 2, 6), (1, 3, 2, 6), (1, 3, 6, 10)]
    assert columns.rows == [(2, 6, 0)]
    assert columns.used.toarray().tolist() == [[0, 0, 0.25, 1, 0.75, 0]]
    assert columns.at_once.toarray().tolist() == [
        [1, 1, 0, 0, 0, 0],
        [0, 0, 1, 1, 0, 0],
        [0, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 0, 1],
    ]
    rate = 4 / (0.1 + 0.15)
    assert columns.progress.toarray()[0] == pytest.approx([0.2, 2 * rate / 100, 0.4, 4 * rate / 100, 0, 0])
    assert columns.progress.toarray()[1] == pytest.approx([0, 0, 0, 0, 1.2, 1.2])


def test_times_are_refused():
    instance = cluster(Job(name="a", max_workers=1, timing=LINEAR, minibatches=1), objective="makespan")
    assert MODEL.refuses(instance) == "objective 'makespan' is no concave function of progress"
    assert MODEL.refuses(cluster(Job(name="a", max_workers=1, timing=LINEAR, minibatches=1))) is None


def test_an_unsolved_problem_is_not_read():
    instance = cluster(Job(name="a", max_workers=1, timing=LINEAR, minibatches=1))
    with pytest.raises(SolverError, match="the problem has no values; solve it first"):
        MODEL.read(MODEL.problem(instance), instance)


@for_each("kind", CONCAVE)
def test_every_utility_as_it_is(kind):
    """One job alone: as much as fits, and what that is worth."""
    rng = np.random.default_rng(5)
    for wanted in (30.0, 80.0):
        utility = UTILITIES[kind](rng)
        instance = cluster(Job(name="a", max_workers=4, timing=LINEAR, minibatches=wanted, utility=utility))
        _, value, bound = solved(instance)
        assert value == pytest.approx(utility.of(min(1.0, 40 / wanted)), rel=1e-6)
        assert bound == pytest.approx(value, rel=1e-6)
