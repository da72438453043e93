"""Bandwidths of rings that share links: closed forms, grids, prices, and bounds that trust no solver."""

import itertools

import numpy as np
import pytest
from scheduling_brute_force import CONCAVE, UTILITIES
from volume import for_each

from ddlopt.frontier.scheduling.formulations import concave
from ddlopt.frontier.scheduling.formulations.bandwidth_shares import BandwidthShares
from ddlopt.frontier.scheduling.formulations.concave import largest_less_price
from ddlopt.frontier.scheduling.formulations.rings_on_links import RingsOnLinks
from ddlopt.models.errors import SolutionError, SolverError
from ddlopt.models.scheduling import (
    AllOrNothing,
    Capped,
    Fair,
    Job,
    Logarithmic,
    LossCurve,
    Network,
    RingTiming,
    Run,
    Schedule,
    SchedulingInstance,
    ServerGroup,
    evaluate,
)
from ddlopt.solvers.backends.convex import Convex
from ddlopt.solvers.contracts import Limits, Status

CONVEX = BandwidthShares()
FAIR = Fair(alpha=1.0, epsilon=0.05)


def job(name, gradient_bytes=1e8, **changes):
    timing = RingTiming(gradient_bytes=gradient_bytes, bandwidth_bytes_per_s=1e9, forward_s_per_sample=0.1)
    return Job(**{"name": name, "max_workers": 4, "timing": timing, "minibatches": 1000.0, "utility": FAIR, **changes})


def star(*given, rates=(1e9, 1e9), **changes):
    """Two servers with eight GPUs each behind a switch (node 2), four slots of 10 s."""
    data = {
        "name": "star",
        "slots": 4,
        "slot_s": 10.0,
        "servers": (ServerGroup(count=2, capacity={"gpu": 8.0}),),
        "network": Network(switches=1, links=tuple((server, 2, rate) for server, rate in enumerate(rates))),
        "jobs": given,
        "bandwidth": "shared",
    }
    return SchedulingInstance(**{**data, **changes})


def run(number, start=0, slots=4, **changes):
    """One worker on each server."""
    data = {"job": number, "start": start, "slots": slots, "workers": ((0, 1), (1, 1)), "ring": (0, 2, 1, 2)}
    return Run(**{**data, **changes})


def schedule(*runs):
    return Schedule(instance="star", runs=runs)


def solved(instance, answer):
    """(problem, schedule with the best bandwidths, objective, bound)."""
    problem = CONVEX.problem(instance, answer)
    assert Convex().solve(problem, Limits()).status is Status.OPTIMAL
    best = CONVEX.read(problem, instance, answer)
    evaluation = evaluate(instance, best)
    assert evaluation.violations == ()
    return problem, best, evaluation.objective, CONVEX.bound(problem, instance, answer)


def rates_of(answer):
    return [run.bandwidth_bytes_per_s for run in answer.runs]


def test_two_equal_rings_share_equally():
    instance, answer = star(job("a"), job("b")), schedule(run(0), run(1))
    problem, best, objective, bound = solved(instance, answer)
    assert rates_of(best) == pytest.approx([5e8, 5e8], rel=1e-3)
    # Each does 2 · 40 s / (0.1 s + 1e8 / 5e8 s) mini-batches of 1000.
    part = 80 / 0.3 / 1000
    assert objective == pytest.approx(2 * np.log1p(part / 0.05), rel=1e-6)
    assert objective <= bound <= objective * (1 + 1e-6)
    # Where all four arcs are full, their prices add up to the marginal utility of bandwidth.
    marginal = (1 / (0.05 + part)) * (80 / 1000) * 1e8 / (0.1 * 5e8 + 1e8) ** 2
    prices = CONVEX.prices(problem, instance, answer)
    assert {price.arc for price in prices} == {(0, 2), (2, 0), (1, 2), (2, 1)}
    assert {(price.start, price.end) for price in prices} == {(0, 4)}
    assert sum(price.price for price in prices) == pytest.approx(marginal, rel=1e-4)


@pytest.mark.parametrize(
    "utilities",
    [
        (Capped(value=2), Capped(value=3)),
        (Logarithmic(value=2, curvature=5), LossCurve(value=1, rate=8)),
        (Fair(alpha=0.5, epsilon=0.1), Fair(alpha=2.0, epsilon=0.1)),
        (Fair(alpha=3.0, epsilon=0.2), Fair(alpha=0.0)),
        (Fair(alpha=1.0, epsilon=0.01), Capped(value=8)),
    ],
    ids=lambda pair: "-".join(one.kind for one in pair),
)
def test_no_grid_point_is_better(utilities):
    jobs = (job("a", 3e8, utility=utilities[0]), job("b", 5e7, utility=utilities[1], minibatches=2000.0))
    instance, answer = star(*jobs), schedule(run(0), run(1))
    _, best, objective, bound = solved(instance, answer)
    assert objective <= bound <= objective + 1e-6 * abs(objective)
    on_grid = [
        evaluate(
            instance,
            schedule(run(0, bandwidth_bytes_per_s=share * 1e9), run(1, bandwidth_bytes_per_s=(1 - share) * 1e9)),
        ).objective
        for share in np.linspace(0.001, 0.999, 999)
    ]
    assert max(on_grid) <= objective * (1 + 1e-7)
    assert max(on_grid) >= objective * (1 - 1e-3)
    share = np.linspace(0.001, 0.999, 999)[int(np.argmax(on_grid))]
    assert rates_of(best)[0] == pytest.approx(share * 1e9, abs=3e6)


def test_the_smallest_part():
    instance = star(job("a", 3e8), job("b", 5e7, minibatches=500.0), objective="max_min")
    answer = schedule(run(0), run(1, slots=2))
    _, best, objective, bound = solved(instance, answer)
    assert objective <= bound <= objective * (1 + 1e-6)
    parts = [
        2 * seconds / (0.1 + moved / rate) / wanted
        for rate, moved, seconds, wanted in zip(rates_of(best), (3e8, 5e7), (40, 20), (1000, 500), strict=True)
    ]
    assert parts == pytest.approx([objective] * 2, rel=1e-5)
    assert sum(rates_of(best)) == pytest.approx(1e9, rel=1e-6)


def test_rings_that_do_not_meet_have_all():
    instance, answer = star(job("a"), job("b"), rates=(1e9, 2e9)), schedule(run(0, 0, 2), run(1, 2, 2))
    problem, best, objective, bound = solved(instance, answer)
    assert rates_of(best) == pytest.approx([1e9, 1e9], rel=1e-6)
    assert objective <= bound <= objective * (1 + 1e-6)
    prices = {(price.arc, price.start, price.end): price.price for price in CONVEX.prices(problem, instance, answer)}
    assert len(prices) == 8
    for start, end in ((0, 2), (2, 4)):
        assert prices[(0, 2), start, end] + prices[(2, 0), start, end] > 1e-11
        assert prices[(1, 2), start, end] < 1e-14  # that link has room


def test_a_finished_job_leaves_bandwidth_to_others():
    """Job a has all it wants with 0.25 GB/s: 80 / (0.1 + 0.4) = 160."""
    instance = star(job("a", minibatches=160.0, utility=Capped(value=50)), job("b", minibatches=1e4))
    _, best, objective, bound = solved(instance, schedule(run(0), run(1)))
    assert rates_of(best) == pytest.approx([2.5e8, 7.5e8], rel=1e-3)
    assert objective <= bound <= objective * (1 + 1e-6)


def test_runs_without_rings_count_too():
    jobs = (job("a"), job("b", 0.0), job("c"))
    runs = (
        run(0),
        run(1),  # nothing to send
        run(2, 0, 1, workers=((0, 4),), ring=(), bandwidth_bytes_per_s=3.0),  # its own 1 GB/s within the server
        run(2, 1, 3, workers=((1, 4),), ring=()),
    )
    instance = star(*jobs)
    answer = schedule(*runs)
    _, best, objective, bound = solved(instance, answer)
    parts = [80 / 0.2 / 1000, 80 / 0.1 / 1000, 160 / (0.1 + 0.15) / 1000]
    assert objective == pytest.approx(sum(np.log1p(part / 0.05) for part in parts), rel=1e-6)
    assert objective <= bound <= objective * (1 + 1e-6)
    assert rates_of(best)[2] is None
    alone = schedule(run(2, workers=((1, 2),), ring=(1, 2)))
    assert RingsOnLinks(instance, alone).schedule(np.zeros(0)).runs[0].ring == ()


def test_an_unsolved_problem_is_not_read():
    instance, answer = star(job("a")), schedule(run(0))
    with pytest.raises(SolverError, match="the problem has no values; solve it first"):
        CONVEX.read(CONVEX.problem(instance, answer), instance, answer)


def test_energy_is_subtracted_from_both():
    servers = (ServerGroup(count=2, capacity={"gpu": 8.0}, idle_w=100, worker_w=50),)
    instance = star(job("a"), servers=servers, energy_price_per_j=1e-4)
    _, _, objective, bound = solved(instance, schedule(run(0)))
    assert objective == pytest.approx(np.log1p(80 / 0.2 / 1000 / 0.05) - 1e-4 * 40 * (200 + 100), rel=1e-6)
    assert objective <= bound <= objective + 1e-6


def random_case(rng, count=5, objective="utility"):
    """Jobs on a tree of two switches, at random times."""
    utilities = [UTILITIES[str(rng.choice(CONCAVE))](rng) for _ in range(count)]
    jobs = tuple(
        job(f"{k}", rng.uniform(1e7, 1e9), minibatches=rng.uniform(50, 1000), utility=one)
        for k, one in enumerate(utilities)
    )
    links = ((0, 4, 1.1e9), (1, 4, 1.9e9), (2, 5, 1e9), (3, 5, 5e8), (4, 5, 1.3e9))
    instance = star(
        *jobs,
        servers=(ServerGroup(count=4, capacity={"gpu": 20.0}),),
        network=Network(switches=2, links=links),
        slots=8,
        objective=objective,
    )
    switch = {0: 4, 1: 4, 2: 5, 3: 5}
    runs = []
    for number in range(count):
        for first in (0, 4):
            a, b = sorted(rng.choice(4, size=2, replace=False).tolist())
            up = (a, switch[a], switch[b]) if switch[a] != switch[b] else (a, switch[a])
            down = (b, switch[b], switch[a]) if switch[a] != switch[b] else (b, switch[b])
            start = first + int(rng.integers(0, 3))
            slots = int(rng.integers(1, first + 5 - start))
            workers = ((a, int(rng.integers(1, 3))), (b, int(rng.integers(1, 3))))
            runs.append(Run(job=number, start=start, slots=slots, workers=workers, ring=(*up, *down)))
    return instance, Schedule(instance="star", runs=tuple(runs))


@pytest.mark.parametrize("objective", ["utility", "max_min"])
def test_random_rings_on_a_tree(objective):
    rng = np.random.default_rng(0)
    for _ in range(6):
        instance, answer = random_case(rng, objective=objective)
        _, best, value, bound = solved(instance, answer)
        assert value <= bound <= value + 2e-6 * abs(value)
        rings = RingsOnLinks(instance, answer)
        # The kept rows say all that every slot says.
        share = np.array(rates_of(best)) / rings.bandwidth
        for slot, arc in itertools.product(range(8), instance.network.arcs):
            load = sum(
                rate * list(zip(one.ring, (*one.ring[1:], one.ring[0]), strict=True)).count(arc)
                for rate, one in zip(rates_of(best), best.runs, strict=True)
                if one.start <= slot < one.end
            )
            assert load <= instance.network.arcs[arc] * (1 + 1e-9)
        for _ in range(20):
            other = rings.fitted(share * rng.uniform(0.5, 1.5, len(share)))
            evaluation = evaluate(instance, rings.schedule(other))
            assert evaluation.violations == ()
            assert evaluation.objective <= bound


@pytest.mark.parametrize("objective", ["utility", "max_min"])
def test_any_multipliers_give_a_bound(objective):
    """Multipliers that are wrong make the bound worse, never wrong."""
    rng, loose = np.random.default_rng(1), 0
    for _ in range(3):
        instance, answer = random_case(rng, objective=objective)
        problem, _, value, sharp = solved(instance, answer)
        for _ in range(20):
            for constraint in problem.constraints[:3]:
                for dual in constraint.dual_variables:
                    dual.save_value(np.abs(dual.value) * rng.uniform(0, 2, np.shape(dual.value)) + rng.uniform(0, 0.01))
            bound = CONVEX.bound(problem, instance, answer)
            assert bound >= value * (1 - 1e-9)
            loose += bound > sharp * (1 + 1e-4)
        for constraint in problem.constraints[:3]:
            for dual in constraint.dual_variables:
                dual.save_value(np.abs(dual.value) * 1e-3)
        assert CONVEX.bound(problem, instance, answer) >= value * (1 - 1e-9)
        assert CONVEX.bound(CONVEX.problem(instance, answer), instance, answer) >= value  # not solved at all
    assert loose > 20


def test_prices_are_the_worth_of_more_bandwidth():
    rng = np.random.default_rng(2)
    instance, answer = random_case(rng)
    problem, _, value, _ = solved(instance, answer)
    gains = {}
    for price in CONVEX.prices(problem, instance, answer):
        gains[frozenset(price.arc)] = gains.get(frozenset(price.arc), 0.0) + price.price
    tested = 0
    for place, (u, v, rate) in enumerate(instance.network.links):
        if gains[frozenset((u, v))] * rate < 1e-2 * value:
            continue
        links = list(instance.network.links)
        links[place] = (u, v, rate * 1.001)
        more = instance.model_copy(update={"network": Network(switches=2, links=tuple(links))})
        gained = solved(more, answer)[2] - value
        assert gained == pytest.approx(gains[frozenset((u, v))] * rate * 0.001, rel=0.02)
        tested += 1
    assert tested >= 2


@pytest.mark.parametrize("kind", [*CONCAVE, "all_or_nothing"])
def test_utility_less_price(kind):
    rng = np.random.default_rng(3)
    for _ in range(20):
        utility = UTILITIES[kind](rng)
        for price in (0.0, 0.1, 1.0, 5.0, 30.0):
            parts = np.linspace(0, 1, 501)
            values = [utility.of(part) - price * part for part in parts]
            found = largest_less_price(utility, price)
            assert found >= max(values) - 1e-12
            assert found <= max(values) + 2e-3


def test_a_tangent_anywhere_is_a_bound(monkeypatch):
    rng = np.random.default_rng(4)
    for part in (0.0, 0.3, 1.0):
        monkeypatch.setattr(concave, "_where_slope_is", lambda utility, price, part=part: part)
        for kind, price in itertools.product(CONCAVE, (0.0, 1.0, 10.0)):
            utility = UTILITIES[kind](rng)
            best = max(utility.of(p) - price * p for p in np.linspace(0, 1, 101))
            assert largest_less_price(utility, price) >= best - 1e-12


@for_each(
    ("changes", "line"),
    [
        ({"bandwidth": "reserved"}, "its bandwidth is 'reserved'; bandwidths are chosen where it is 'shared'"),
        ({"objective": "makespan"}, "objective 'makespan' counts whole slots and is not concave in bandwidths"),
        (
            {"jobs": (job("a"), job("b", utility=AllOrNothing()))},
            "the utility of jobs[1] 'b', all_or_nothing, is not concave",
        ),
        ({}, None),
        ({"jobs": (job("a", utility=AllOrNothing()),), "objective": "max_min"}, None),
    ],
)
def test_what_is_refused(changes, line):
    assert CONVEX.refuses(star(**{"jobs": (job("a"), job("b")), **changes})) == line


def test_bad_rings():
    instance = star(job("a"))
    with pytest.raises(SolutionError, match=r"runs\[0\] is on 2 servers, but has no ring; give one"):
        CONVEX.problem(instance, schedule(run(0, ring=())))
    with pytest.raises(SolutionError, match=r"runs\[0\]: its ring leads over 0 -> 1, where there is no link"):
        CONVEX.problem(instance, schedule(run(0, ring=(0, 1))))
