"""Admission at exponential prices."""

import itertools

import numpy as np
import pytest
from one_server_cases import RING, answered, cluster, job
from scheduling_brute_force import brute_force, random_instance
from volume import for_each, slow

from ddlopt.models.scheduling import AllOrNothing, Capped, Logarithmic
from ddlopt.models.scheduling.pool import pool
from ddlopt.solvers.scheduling.online.engine import State
from ddlopt.solvers.scheduling.online.primal_dual import PrimalDual, _Prices
from ddlopt.solvers.scheduling.slot.rates import Rates


def solve(instance, **options):
    return answered(PrimalDual(**options), instance)


@pytest.mark.parametrize(
    "kind",
    [
        {"deadlines": True, "jobs": 4},
        {"places": (2, 2), "network": "star"},
        {"places": (3, 2), "uneven": True},
        {"places": (2, 2), "energy": True},
        {"places": (2, 2), "contention": True},
        {"utilities": ("all_or_nothing", "capped"), "min_workers": True},
        {"preemptive": False, "slots": 4},
    ],
)
@pytest.mark.parametrize("cases", [2, slow(12)])
@pytest.mark.parametrize("fill", [False, True])
def test_plans_fit_and_are_worth_something(kind, fill, cases):
    rng = np.random.default_rng(20)
    parts = []
    for _ in range(cases):
        drawn = random_instance(rng, **kind)
        best = brute_force(drawn).objective
        value, _, _ = solve(drawn, fill=fill)
        assert -1e-9 <= value <= best + 1e-9
        if best > 0:
            parts.append(value / best)
    assert np.mean(parts) > 0.6


def state_of(instance):
    count = len(instance.jobs)
    return State(
        instance,
        Rates(instance),
        pool(instance),
        wanted=np.array([job.minibatches for job in instance.jobs]),
        done=np.zeros(count),
        served=np.zeros(count),
        width=np.zeros(count, dtype=np.int64),
        arrival=np.array([job.arrival for job in instance.jobs]),
        last=np.array([instance.last_slot(job) for job in range(count)]),
    )


def payoff(instance, cost, widths):
    done = sum(instance.progress(0, width) for width in widths)
    wanted = instance.jobs[0].minibatches
    return float(instance.jobs[0].utility.of(min(1.0, done / wanted))) - float(np.dot(cost, widths))


@for_each("preemptive", [True, False])
@for_each("utility", [Capped(value=3.0), Logarithmic(value=3.0), AllOrNothing(value=3.0)])
def test_the_plan_is_the_best_at_its_prices(utility, preemptive):
    rng = np.random.default_rng(21)
    found = 0
    for _ in range(30):
        # Whole slots at one width: otherwise buying by unit price is only nearly the best.
        wanted = float(rng.integers(1, 5))
        few = cluster([job("one", 1, wanted, utility=utility)], 5, preemptive=preemptive)
        prices, state = _Prices(few, False), state_of(few)
        cost, room = rng.uniform(0, 1.5, 5), rng.integers(0, 2, 5)
        plan = (prices._plan if preemptive else prices._piece)(state, 0, cost, room)
        best = 0.0
        for widths in itertools.product((0, 1), repeat=5):
            pieces = sum(a != b for a, b in itertools.pairwise((0, *widths, 0)))
            # What has started in one piece ends when it is finished, or with the last slot.
            whole = pieces == 2 and (sum(widths) == wanted or widths[-1])
            if (np.array(widths) <= room).all() and sum(widths) <= wanted and (preemptive or whole):
                best = max(best, payoff(few, cost, widths))
        assert payoff(few, cost, [plan.get(t, 0) for t in range(5)]) == pytest.approx(best, abs=1e-12)
        found += bool(plan)
    assert found > 5


def test_plans_use_only_widths_that_pay_by_their_price():
    # One worker does 1 in a slot, two also 1, five 1.92 and eight 2.91: only 1 and the most are on the envelope.
    few = cluster([job("wide", 8, 100.0, timing=RING, utility=Capped(value=100.0))], 4, 8)
    # Seven more workers add 1.91: they pay at 0.24 and not at 0.5; one worker alone pays at 0.5 as well.
    plan = _Prices(few, False)._plan(state_of(few), 0, np.array([0.24, 0.1, 0.5, 2.0]), np.array([8, 5, 8, 8]))
    assert plan == {0: 8, 1: 5, 2: 1}


def test_prices_rise_from_half_the_least_worth_to_the_largest():
    jobs = [job("poor", 2, 2.0, utility=Capped(value=1.0)), job("rich", 1, 1.0, utility=Capped(value=5.0))]
    few = cluster(jobs, slots=3, gpus=2)
    prices, state = _Prices(few, False), state_of(few)
    prices._set_prices(state)
    assert prices.lowest.tolist() == [0.25]
    assert prices.highest.tolist() == [5.0]
    prices.promised[:, 0] = [0.0, 1.0, 2.0]
    assert prices.prices(np.arange(3))[:, 0] == pytest.approx([0.25, np.sqrt(0.25 * 5.0), 5.0])


def test_the_largest_worth_is_that_of_what_a_slot_can_do():
    jobs = [job(name, 1, 4.0, utility=Logarithmic(value=3.0)) for name in ("slow", "as slow")]
    few = cluster(jobs, slots=8, gpus=1)
    prices = _Prices(few, False)
    prices._set_prices(state_of(few))
    assert prices.highest.tolist() == [few.jobs[0].utility.of(0.25)]
    assert prices.lowest.tolist() == [few.jobs[0].utility.of(1.0) / 4 / 2]


def test_no_more_is_promised_than_there_is():
    wide = job("wide", 2, 40.0, demand={"gpu": 2.0}, utility=Capped(value=100.0))
    few = cluster([wide, wide.model_copy(update={"name": "next"})], slots=2, gpus=5)
    prices, state = _Prices(few, False), state_of(few)
    prices._set_prices(state)
    prices.promised[1, 0] = 3.0
    prices._admit(state, 0)
    assert prices.plans == {0: {0: 2}, 1: {0: 1}}
    assert prices.promised[:, 0].tolist() == [4.0, 5.0]
    prices._admit(state, 1)
    assert (prices.plans, prices.admitted) == ({0: {0: 2}, 1: {0: 1}}, 1)


@for_each(("watts", "admitted"), [(1.0, 1), (4.0, 0)])
def test_a_job_that_is_worth_less_than_its_energy_is_turned_away(watts, admitted):
    few = cluster([job("one", 1, 1.0, utility=Capped(value=6.0))], slots=1, energy_price_per_j=1.0)
    servers = [few.servers[0].model_copy(update={"worker_w": watts, "idle_w": watts})]
    value, _, details = solve(few.changed(servers=servers))
    assert details["admitted_jobs"] == admitted
    assert value == (6.0 - 2 * watts) * admitted


def test_a_job_of_little_worth_is_turned_away_once_prices_have_risen():
    jobs = [job(f"first-{k}", 1, 3.0, utility=Capped(value=6.0)) for k in range(3)]
    jobs += [job("poor", 1, 3.0, utility=Capped(value=0.3)), job("rich", 1, 3.0, utility=Capped(value=30.0))]
    value, schedule, details = solve(cluster(jobs, slots=3, gpus=4))
    assert {run.job for run in schedule.runs} == {0, 1, 2, 4}
    assert details["admitted_jobs"] == 4
    assert value == pytest.approx(48.0)


def test_room_left_over_goes_to_those_admitted_if_asked():
    rng = np.random.default_rng(22)
    more = 0
    for _ in range(20):
        drawn = random_instance(rng, jobs=4, slots=4)
        more += solve(drawn, fill=True)[0] - solve(drawn)[0] > 1e-6
    assert more > 5


@for_each(("gpus", "fill", "slots"), [(2, False, [0, 1, 2]), (2, True, [0, 0, 1]), (3, True, [0, 0, 0])])
def test_those_whose_turn_is_next_come_first_where_room_is_left(gpus, fill, slots):
    jobs = [job(f"j{k}", 1, 1.0, utility=Capped(value=1.0)) for k in range(3)]
    _, schedule, _ = solve(cluster(jobs, 3, gpus), fill=fill)
    assert [run.start for run in sorted(schedule.runs, key=lambda run: run.job)] == slots


def test_it_refuses_to_leave_jobs_unfinished_that_must_be():
    drawn = random_instance(np.random.default_rng(0), objective="makespan")
    assert "turns jobs away" in PrimalDual().refuses(drawn)
