"""The greedy over slots and its oracles."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from one_server_cases import RING, answered, cluster, job
from scheduling_brute_force import brute_force, random_instance
from volume import for_each, slow

from ddlopt.models.scheduling import (
    AllOrNothing,
    Capped,
    Fair,
    Logarithmic,
    LossCurve,
    Network,
    SchedulingInstance,
    ServerGroup,
    evaluate,
)
from ddlopt.models.scheduling.formulations.slot_embedding.slot_embedding import SlotEmbedding
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling import gadget
from ddlopt.solvers.scheduling.gadget import Gadget, Greedy
from ddlopt.solvers.scheduling.online.engine import simulate
from ddlopt.solvers.scheduling.slot.modelled import Modelled
from ddlopt.solvers.scheduling.slot.oracles import Knapsack, Packing, PoolBound
from ddlopt.solvers.scheduling.slot.worth import SlotGains, Utilities


def solve(instance, oracle="auto", seed=0):
    return answered(Gadget(oracle=oracle), instance, seed)


@for_each(
    "kind",
    [
        {},
        {"places": (3, 2), "min_workers": True},
        {"places": (5,), "uneven": True},
        {"places": (4,), "energy": True},
        {"places": (4,), "latency": True, "pollux": True},
    ],
)
@for_each("cases", [8, slow(40)])
def test_in_one_slot_the_knapsack_is_the_optimum(kind, cases):
    rng = np.random.default_rng(7)
    for _ in range(cases):
        drawn = random_instance(rng, slots=1, jobs=4, **kind)
        assert Gadget(oracle="knapsack").refuses(drawn) is None
        assert solve(drawn, "knapsack")[0] == pytest.approx(brute_force(drawn).objective, rel=1e-9)


def test_half_of_the_optimum_is_attained():
    # The job worth a hair more could wait; the other one is gone after the first slot.
    jobs = [job("waits", 2, 2.0, utility=Capped(value=1.001)), job("leaves", 2, 2.0, deadline=1)]
    few = cluster(jobs, slots=2)
    value, _, details = solve(few)
    assert value == pytest.approx(1.001)
    assert brute_force(few).objective == pytest.approx(2.001)
    assert details["smallest_beta"] == 1.0
    assert details["guaranteed_part"] == 0.5


def test_wide_jobs_are_seen_although_their_second_worker_gains_little():
    # Progress is convex in the width: two workers do no more than one, but 8 together do 2.9 times as much.
    few = cluster([job("wide", 8, 100.0, timing=RING)], slots=1, gpus=8)
    assert [run.width for run in solve(few)[1].runs] == [8]


@for_each(
    "kind",
    [
        {"places": (2, 2), "network": "star"},
        {"places": (2, 1, 2), "network": "mesh"},
        {"places": (3, 2), "uneven": True},
        {"places": (4, 3), "uneven": True, "preemptive": False},
        {"places": (2, 2), "energy": True},
    ],
)
def test_the_gain_of_packing_is_what_its_choice_gains(kind):
    rng = np.random.default_rng(11)
    for _ in range(25):
        drawn = random_instance(rng, slots=4, jobs=4, **kind)
        watch = _Watched(Packing(drawn), SlotGains(drawn))
        schedule = simulate(drawn, watch, Clock(Limits(), None), "packing").schedule
        found = evaluate(drawn, schedule)
        assert not found.violations
        assert all(answer.gain <= answer.bound + 1e-9 for answer in watch.answers)
        assert all(answer.gain >= -1e-9 for answer in watch.answers)
        if drawn.preemptive:
            assert sum(answer.gain for answer in watch.answers) == pytest.approx(float(found.objective), abs=1e-9)


@dataclass
class _Watched:
    oracle: object
    gains: object

    def __post_init__(self):
        self.answers = []

    def choose(self, state):
        self.answers.append(self.oracle.best(state, self.gains.of(state)))
        return self.answers[-1].choice


@pytest.mark.slow
def test_packing_is_near_the_optimum_on_tiny_clusters():
    rng = np.random.default_rng(2)
    parts = []
    for _ in range(60):
        drawn = random_instance(rng, slots=1, jobs=4, places=(2, 2), network="star")
        parts.append(solve(drawn, "packing")[0] / brute_force(drawn).objective)
    assert min(parts) > 0.6
    assert np.mean(parts) > 0.95


def test_the_pool_bounds_every_slot_even_where_resources_have_no_common_part():
    servers = (ServerGroup(count=2, capacity={"gpu": 2.0, "memory": 3.1}),)
    rng = np.random.default_rng(4)
    for _ in range(20):
        jobs = [
            job(
                f"j{k}",
                2,
                5.0,
                demand={"gpu": 1.0, "memory": float(rng.uniform(0.8, 1.5))},
                utility=Capped(value=float(rng.uniform(1, 2))),
            )
            for k in range(4)
        ]
        few = SchedulingInstance(name="few", slots=1, slot_s=1.0, servers=servers, jobs=tuple(jobs))
        bound = PoolBound(few)
        assert not bound.sharp
        assert Gadget(oracle="knapsack").refuses(few)
        watch = _Watched(Packing(few), SlotGains(few))
        simulate(few, watch, Clock(Limits(), None), "packing")
        best = brute_force(few).objective
        assert watch.answers[0].gain <= best + 1e-9
        assert best <= watch.answers[0].bound + 1e-9
        assert watch.answers[0].bound <= 4 * best


@pytest.mark.parametrize("objective", ["makespan", "completion", "max_min"])
@pytest.mark.parametrize("kind", [{}, {"places": (2, 2), "network": "star"}, {"preemptive": False}])
@pytest.mark.parametrize("cases", [2, slow(15)])
def test_other_objectives_have_gains_that_lead_near_their_optimum(objective, kind, cases):
    rng = np.random.default_rng(6)
    ratios = []
    while len(ratios) < cases:
        drawn = random_instance(rng, objective=objective, slots=4, **kind)
        best = brute_force(drawn)
        if best is None or best.objective == 0:
            continue
        sure = drawn.model_copy(update={"slots": 12}) if objective != "max_min" else drawn
        ratios.append(solve(sure)[0] / best.objective)
    assert np.mean(ratios) == pytest.approx(1, abs=0.1)
    if objective == "max_min":
        assert max(ratios) <= 1 + 1e-9
    if objective == "makespan":
        assert min(ratios) >= 1 - 1e-9


def test_nothing_is_gained_before_the_end_of_all_or_nothing_jobs_but_they_still_run():
    few = cluster([job("all", 2, 4.0, utility=AllOrNothing(value=3.0))], slots=3)
    value, _, details = solve(few)
    assert value == 3.0
    assert "guaranteed_part" not in details


def test_a_start_in_one_piece_is_worth_its_average_slot():
    # Two slots of one worker for 2 each, or one slot of two workers for 3: the latter gains more in its slot.
    # The last job needs a part of its second slot, too.
    jobs = [job("long", 1, 2.0, utility=Capped(value=4.0)), job("wide", 2, 2.0, min_workers=2)]
    few = cluster([*jobs, job("part", 1, 1.5, utility=Capped(value=3.0))], 4, 2)
    few = few.model_copy(update={"preemptive": False})
    seen = []

    class Watch:
        def choose(self, state):
            gains = SlotGains(few).of(state)
            seen.append({int(one): gains.row(place).tolist() for place, one in enumerate(gains.jobs)})
            return {0: 1} if state.slot == 0 else {}

    simulate(few, Watch(), Clock(Limits(), None), "watch")
    assert seen[0] == {0: [0.0, 2.0], 1: [0.0, -np.inf, 1.0], 2: [0.0, 1.5]}
    assert seen[1] == {1: [0.0, -np.inf, 1.0], 2: [0.0, 1.5]}


def test_utilities_of_many_jobs_are_those_of_each():
    rng = np.random.default_rng(8)
    kinds = [
        Capped(value=2.0),
        Logarithmic(value=3.0, curvature=4.0),
        LossCurve(value=1.5, rate=7.0),
        Fair(alpha=0.0, epsilon=0.1),
        Fair(alpha=1.0, epsilon=0.2, value=2.0),
        Fair(alpha=3.0, epsilon=0.3),
        AllOrNothing(value=5.0),
    ]
    jobs, parts = np.arange(len(kinds)).repeat(5), rng.uniform(0, 1.2, 5 * len(kinds))
    parts[::5], parts[1::5] = 0.0, 1.0
    expected = [float(kinds[one].of(min(1.0, part))) for one, part in zip(jobs, parts.tolist(), strict=True)]
    assert Utilities(kinds).of(jobs, parts) == pytest.approx(expected, abs=1e-12)
    for one in range(len(kinds)):
        mine = jobs == one
        assert Utilities([kinds[one]]).of(jobs[mine] * 0, parts[mine]) == pytest.approx(np.array(expected)[mine])
    assert Utilities(kinds, envelope=True).of(np.array([6]), np.array([0.5])).tolist() == [2.5]


def test_names_and_refusals():
    assert [Gadget(oracle=oracle).name for oracle in ("auto", "embedding", "packing")] == [
        "gadget",
        "gadget:oracle=embedding",
        "gadget:oracle=packing",
    ]
    rng = np.random.default_rng(0)
    star = random_instance(rng, places=(2, 2), network="star")
    assert Gadget(oracle="knapsack").refuses(star) == "it matters which servers the workers are on"
    assert Gadget().refuses(star) is None


def test_a_slot_of_the_knapsack_takes_room_of_jobs_that_run_on():
    few = cluster([job("first", 2, 4.0), job("next", 2, 2.0, arrival=1)], 4, 3, preemptive=False)
    seen = []

    class Watch:
        def choose(self, state):
            answer = Knapsack(few).best(state, SlotGains(few).of(state))
            seen.append(dict(answer.choice))
            return answer.choice

    simulate(few, Watch(), Clock(Limits(), None), "watch")
    assert seen == [{0: 2}, {1: 1}]


def test_all_or_nothing_jobs_that_cannot_finish_any_more_gain_nothing():
    jobs = [job("hopeless", 1, 3.0, deadline=2, utility=AllOrNothing(value=9.0)), job("small", 1, 3.0)]
    assert {run.job for run in solve(cluster(jobs, slots=3, gpus=1))[1].runs} == {1}
    jobs[0] = jobs[0].model_copy(update={"deadline": 3})
    assert {run.job for run in solve(cluster(jobs, slots=3, gpus=1))[1].runs} == {0}


def test_packing_tries_smaller_widths_where_one_finds_no_place():
    ring = RING.model_copy(update={"gradient_bytes": 0.5})
    thin = Network(switches=1, links=((0, 2, 0.5), (1, 2, 0.5)))
    servers = (ServerGroup(count=2, capacity={"gpu": 2.0}),)
    few = SchedulingInstance(
        name="thin", slots=1, slot_s=1.0, servers=servers, network=thin, jobs=(job("wide", 4, 9.0, timing=ring),)
    )
    assert [run.width for run in solve(few, "packing")[1].runs] == [2]


NETWORKS = [
    {"places": (2, 2), "network": "star"},
    {"places": (2, 1, 1), "network": "mesh"},
    {"places": (3, 2), "uneven": True},
    {"places": (2, 2), "energy": True},
]


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("cases", [3, slow(8)])
def test_in_one_slot_the_embedding_is_the_optimum_and_its_bound_meets_it(kind, cases):
    rng = np.random.default_rng(30)
    for _ in range(cases):
        drawn = random_instance(rng, slots=1, jobs=4, **kind)
        best = brute_force(drawn).objective
        result = Gadget(oracle="embedding").solve(drawn, Limits())
        assert result.objective == pytest.approx(best, rel=2e-4, abs=1e-9)
        assert best * (1 - 1e-9) <= result.bound <= best * (1 + 2e-4) + 1e-9


@pytest.mark.parametrize("kind", [*NETWORKS, {"places": (2, 2), "network": "tree", "preemptive": False}])
@pytest.mark.parametrize("oracle", ["embedding", "packing"])
@pytest.mark.parametrize("cases", [2, slow(6)])
def test_models_of_slots_give_schedules_within_their_guarantee(oracle, kind, cases):
    rng = np.random.default_rng(31)
    for _ in range(cases):
        drawn = random_instance(rng, slots=3, deadlines=True, **kind)
        value, _, details = solve(drawn, oracle)
        best = brute_force(drawn).objective
        assert value <= best + 1e-9
        assert (0.999 if oracle == "embedding" else 0.0) <= details["smallest_beta"] <= 1
        assert value >= details.get("guaranteed_part", 0.0) * best - 1e-9
        assert ("guaranteed_part" in details) == (drawn.preemptive and not drawn.energy_price_per_j)


def test_a_model_is_asked_where_packing_loses():
    drawn = random_instance(np.random.default_rng(3), slots=1, jobs=4, places=(3, 2, 2), network="star")
    best = brute_force(drawn).objective
    assert solve(drawn, "embedding")[0] == pytest.approx(best, rel=2e-4)
    assert solve(drawn, "packing")[0] < 0.96 * best


def test_without_time_for_a_model_packing_answers():
    rng = np.random.default_rng(32)
    for _ in range(5):
        drawn = random_instance(rng, slots=1, jobs=4, places=(2, 2), network="star")
        hasty = Gadget(oracle="embedding", slot_limit_s=1e-9)
        schedule, details = hasty.answer(drawn, 0, Clock(Limits(), None), None)
        packed, _, _ = solve(drawn, "packing")
        assert float(evaluate(drawn, schedule).objective) >= packed * (1 - 1e-12)
        assert 0 < details["smallest_beta"] <= 1


def test_auto_takes_the_first_oracle_that_suits():
    rng = np.random.default_rng(33)
    star = random_instance(rng, places=(2, 2), network="star")
    assert Gadget()._chosen(random_instance(rng)) == "knapsack"
    assert Gadget()._chosen(star) == "embedding"
    assert Gadget()._chosen(star.model_copy(update={"slots": 5000})) == "packing"
    assert Gadget()._chosen(star.model_copy(update={"bandwidth": "shared"})) == "packing"
    assert Gadget()._chosen(random_instance(rng, places=(2, 2), contention=True)) == "packing"
    assert Gadget(oracle="embedding").refuses(random_instance(rng, places=(2, 2), contention=True))
    assert Gadget(oracle="embedding").refuses(star.model_copy(update={"bandwidth": "shared"}))


def test_without_time_for_a_model_the_bound_is_that_of_widths():
    rng = np.random.default_rng(34)
    unproven = 0
    for _ in range(10):
        drawn = random_instance(rng, slots=1, jobs=4, places=(2, 2, 1), network="tree", min_workers=True)
        oracle = Modelled(drawn, SlotEmbedding, rng, Clock(Limits(), None), 1e-9)
        watch, packed = _Watched(oracle, SlotGains(drawn)), _Watched(Packing(drawn), SlotGains(drawn))
        for policy in (watch, packed):
            assert not evaluate(drawn, simulate(drawn, policy, Clock(Limits(), None), "watched").schedule).violations
        assert watch.answers[0].gain == packed.answers[0].gain > 0
        assert watch.answers[0].bound <= packed.answers[0].bound
        unproven += watch.answers[0].gain < 0.99 * watch.answers[0].bound
    assert unproven > 2


@for_each(
    ("kind", "has_one"),
    [
        ({}, True),
        ({"slots": 2}, False),
        ({"objective": "max_min"}, False),
        ({"places": (2, 2), "contention": True}, False),
    ],
)
def test_only_of_a_single_slot_of_utilities_is_the_bound_that_of_the_oracle(kind, has_one):
    drawn = random_instance(np.random.default_rng(36), **{"slots": 1, "jobs": 4} | kind)
    clock = Clock(Limits(), None)
    schedule, details = Gadget().answer(drawn, 0, clock, None)
    bound = Gadget().certificate(drawn, schedule, clock)
    assert (bound is not None) == has_one
    if bound is not None:
        value = float(evaluate(drawn, schedule).objective)
        assert value < bound < value * (1 + 1e-8)
    assert ("smallest_beta" in details) == (drawn.contention is None)


def test_the_worst_slot_says_how_good_the_oracle_was():
    """A slot in which nothing can be gained says nothing."""
    said = [(0.0, 0.0), (0.375, 0.5), (0.0, 0.0), (1.0, 4.0), (5.0, 5.0)]
    answers = iter([SimpleNamespace(gain=gain, bound=bound, choice={}) for gain, bound in said])
    oracle = SimpleNamespace(best=lambda *_: next(answers))
    drawn = random_instance(np.random.default_rng(37), slots=len(said))
    policy = Greedy(drawn, oracle)
    policy.gains = SimpleNamespace(of=lambda _: None)
    betas = []
    for _ in said:
        policy.choose(None)
        betas.append(policy.smallest_beta)
    assert betas == [1.0, 0.75, 0.75, 0.25, 0.25]


@for_each(
    ("options", "seconds"),
    [
        ({"oracle": "embedding"}, 30.0),
        ({}, 5.0),
        ({"slot_limit_s": 2.0}, 2.0),
        ({"oracle": "embedding", "slot_limit_s": 7.0}, 7.0),
    ],
)
def test_a_model_has_the_seconds_that_were_asked_for_and_fewer_where_nobody_did(options, seconds, monkeypatch):
    monkeypatch.setattr(gadget, "Modelled", lambda *told: told[-1])
    star = random_instance(np.random.default_rng(33), places=(2, 2), network="star")
    assert Gadget(**options)._oracle(star, 0, Clock(Limits(), None)) == seconds


@pytest.mark.slow
def test_the_bound_of_a_result_is_that_of_all_slots():
    rng = np.random.default_rng(35)
    for number in range(12):
        drawn = random_instance(rng, **NETWORKS[number % len(NETWORKS)])
        result = Gadget().solve(drawn, Limits())
        assert result.bound >= brute_force(drawn).objective * (1 - 1e-9)
