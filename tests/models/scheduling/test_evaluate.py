"""The independent check of a schedule: figures by hand, and every kind of violation by mutation."""

import numpy as np
import pytest
from volume import for_each

from ddlopt.models.errors import SolutionError
from ddlopt.models.scheduling import (
    AllOrNothing,
    Capped,
    Contention,
    Job,
    Logarithmic,
    Network,
    RingTiming,
    Run,
    Schedule,
    SchedulingInstance,
    ServerGroup,
    evaluate,
)

TIMING = RingTiming(gradient_bytes=1e8, bandwidth_bytes_per_s=1e9, forward_s_per_sample=0.1)
"""0.1 s alone; 0.2 s for two and 0.25 s for four workers: 100, 100 and 160 mini-batches in a slot of 10 s."""


def job(name, **changes):
    return Job(**{"name": name, "max_workers": 4, "timing": TIMING, "minibatches": 200.0, **changes})


def instance(**changes):
    """Two servers with four GPUs each, four slots of 10 s, two jobs that want 200 mini-batches."""
    data = {
        "name": "pair",
        "slots": 4,
        "slot_s": 10.0,
        "servers": (ServerGroup(count=2, capacity={"gpu": 4.0}),),
        "jobs": (job("a"), job("b", arrival=1, deadline=3, min_workers=2)),
    }
    return SchedulingInstance(**{**data, **changes})


def star(rate=1.5e9, **changes):
    """The same behind a switch (node 2)."""
    return instance(network=Network(switches=1, links=((0, 2, rate), (1, 2, rate))), **changes)


def run(job, start, slots, *workers, **more):
    return Run(job=job, start=start, slots=slots, workers=workers, **more)


def schedule(*runs, **changes):
    return Schedule(**{"instance": "pair", "runs": runs, **changes})


GOOD = (run(0, 0, 1, (0, 1)), run(1, 1, 2, (0, 2), (1, 2)), run(0, 1, 2, (0, 1)))
RINGS = (run(0, 0, 1, (0, 1)), run(1, 1, 2, (0, 2), (1, 2), ring=(0, 2, 1, 2)), run(0, 1, 2, (0, 1)))


def kinds(evaluation):
    return [violation.kind for violation in evaluation.violations]


def test_utility_by_hand():
    jobs = (
        job("a", utility=Capped(value=2), minibatches=400.0),
        job("b", utility=Logarithmic(value=3, curvature=9), minibatches=320.0),
        job("c", utility=AllOrNothing(value=5), minibatches=300.0),
        job("d", utility=AllOrNothing(value=7), minibatches=301.0),
    )
    runs = (
        run(0, 0, 3, (0, 1)),  # 3 of 4 hundred
        run(1, 0, 1, (0, 2), (1, 2)),  # 160 of 320: log 5.5 / log 10
        run(2, 1, 3, (1, 2)),  # 300, just done
        run(3, 0, 3, (1, 1)),  # one short
    )
    evaluation = evaluate(instance(jobs=jobs), schedule(*runs))
    assert evaluation.feasible
    assert evaluation.objective == pytest.approx(2 * 0.75 + 3 * np.log10(5.5) + 5)
    assert evaluation.details["finished_jobs"] == 1
    assert evaluation.details["smallest_part"] == pytest.approx(0.5)
    assert evaluation.details["makespan_s"] == 40
    assert evaluation.details["busy_part"] == pytest.approx((3 + 4 + 6 + 3) / 32)


def test_training_beyond_what_is_wanted_is_worth_nothing():
    longer = evaluate(instance(), schedule(run(0, 0, 4, (0, 4))))
    enough = evaluate(instance(), schedule(run(0, 0, 2, (0, 4))))
    assert longer.objective == enough.objective == 1
    assert longer.details["makespan_s"] == enough.details["makespan_s"] == 20


def test_nothing_done_is_worth_nothing():
    evaluation = evaluate(instance(), schedule())
    assert evaluation.feasible
    assert evaluation.objective == 0
    assert "makespan_s" not in evaluation.details
    assert evaluate(instance(objective="max_min"), schedule()).objective == 0


CHANGES = {
    "none": ([run(0, 1, 3, (0, 1))], 0, 300),  # the first start is free, whenever it is
    "cut": ([run(0, 1, 2, (0, 1)), run(0, 3, 1, (0, 1))], 0, 300),  # the same, told in two runs
    "pause": ([run(0, 0, 1, (0, 1)), run(0, 2, 2, (0, 1))], 1, 100 + 75 + 100),
    "wider": ([run(0, 0, 1, (0, 1)), run(0, 1, 2, (0, 4))], 1, 100 + 0.75 * 160 + 160),
    "moved": ([run(0, 0, 1, (0, 1)), run(0, 1, 1, (1, 1))], 1, 100 + 75),
    "order": ([run(0, 0, 1, (0, 2), (1, 2)), run(0, 1, 1, (1, 2), (0, 2))], 0, 320),  # of servers is none
    "spread": ([run(0, 0, 1, (0, 1), (1, 3)), run(0, 1, 1, (0, 3), (1, 1))], 1, 160 + 0.75 * 160),
    "twice": ([run(0, 4, 1, (0, 1)), run(0, 0, 2, (0, 1)), run(0, 2, 1, (0, 4))], 2, 200 + 120 + 75),
}


@pytest.mark.parametrize("case", CHANGES)
def test_changes_by_hand(case):
    runs, changes, done = CHANGES[case]
    slow = instance(slots=8, jobs=(job("a", minibatches=1000.0, change_s=2.5), job("b", change_s=0.0)))
    for exact in (False, True):
        evaluation = evaluate(slow, schedule(*runs), exact)
        assert evaluation.feasible
        assert evaluation.details["changes"] == changes
        assert float(evaluation.objective) == pytest.approx(done / 1000)
    free = instance(slots=8, jobs=(job("a", minibatches=1000.0), job("b")))
    assert "changes" not in evaluate(free, schedule(*runs)).details
    assert evaluate(free, schedule(*runs)).objective >= done / 1000 - 1e-12


def test_a_change_may_take_all_of_a_slot_and_put_off_the_end():
    # 100 + 0 + 100: done with the third slot in which it runs, not with the second.
    one = instance(objective="makespan", jobs=(job("a", change_s=10.0),))
    paused = schedule(run(0, 0, 1, (0, 1)), run(0, 2, 2, (0, 1)))
    assert evaluate(one, paused).objective == 40
    assert evaluate(one, schedule(run(0, 0, 2, (0, 1)))).objective == 20
    left = evaluate(one, schedule(run(0, 0, 1, (0, 1)), run(0, 2, 1, (0, 1))))
    assert kinds(left) == ["job_is_finished"]
    assert left.violations[0].lhs == 100


def test_jobs_in_one_piece_lose_nothing():
    pieces = instance(preemptive=False, jobs=(job("a", change_s=10.0), job("b", change_s=10.0)))
    evaluation = evaluate(pieces, schedule(run(0, 1, 2, (0, 1)), run(1, 1, 2, (0, 2))))
    assert (evaluation.objective, evaluation.violations) == (2, ())
    assert "changes" not in evaluation.details


TYPES = {
    "fast": (((0, 1),), 50, []),
    "slow": (((1, 1),), 25, []),
    "the slowest": (((0, 2), (1, 2)), 0.25 * 160, []),
    "nowhere": (((2, 1),), 0, ["type_suits_the_job"]),
    "apart": (((0, 2), (1, 2)), 0.25 * 160, ["workers_are_of_one_type"]),
}


@pytest.mark.parametrize("case", TYPES)
def test_types_by_hand(case):
    workers, done, wrong = TYPES[case]
    servers = tuple(ServerGroup(capacity={"gpu": 4.0}, type=name) for name in ("v100", "k80", "cpu"))
    fast = job("a", speeds={"v100": 0.5, "k80": 0.25, "cpu": 0})
    asked = instance(servers=servers, jobs=(fast, job("b")), mixed_types=case != "apart")
    for exact in (False, True):
        evaluation = evaluate(asked, schedule(run(0, 0, 1, *workers), run(1, 0, 1, (2, 1))), exact)
        assert kinds(evaluation) == wrong
        assert float(evaluation.objective) == pytest.approx(done / 200 + 100 / 200)


def test_energy_of_overlapping_runs_by_hand():
    servers = (ServerGroup(capacity={"gpu": 4.0}, idle_w=100, worker_w=50), ServerGroup(capacity={"gpu": 4}, idle_w=7))
    runs = (
        run(0, 0, 3, (0, 1)),
        run(1, 1, 2, (0, 2), (1, 2)),  # server 0 is on already, server 1 is on for two slots
    )
    priced = instance(servers=servers, energy_price_per_j=1e-4)
    evaluation = evaluate(priced, schedule(*runs))
    joules = 10 * (100 * 3 + 7 * 2 + 50 * 1 * 3 + 50 * 2 * 2)
    assert evaluation.details["energy_j"] == joules
    assert evaluation.objective == pytest.approx(1 + 1 - 1e-4 * joules)  # a: 300 of 200, b: 320 of 200
    apart = schedule(run(0, 0, 1, (0, 1)), run(0, 3, 1, (0, 1)))
    assert evaluate(priced, apart).details["energy_j"] == 10 * (100 * 2 + 50 * 2)  # off in between


def test_completion_times_by_hand():
    runs = (run(0, 0, 1, (0, 1)), run(1, 1, 2, (0, 2), (1, 2)), run(0, 2, 2, (0, 2)))
    jobs = (job("a", utility=Capped(value=3)), job("b", arrival=1))
    of = {goal: evaluate(instance(jobs=jobs, objective=goal), schedule(*runs)) for goal in ("makespan", "completion")}
    # Both have their 200 after the third slot: a after 100 + 100, b after 160 + 40.
    assert of["makespan"].objective == 30
    assert of["completion"].objective == 3 * 30 + (30 - 10)
    assert of["completion"].details["mean_jct_s"] == (30 + 20) / 2
    assert evaluate(instance(jobs=jobs, objective="max_min"), schedule(*runs)).objective == 1


def test_a_job_that_must_finish_and_does_not():
    evaluation = evaluate(instance(objective="makespan"), schedule(run(0, 0, 2, (0, 1)), run(1, 1, 1, (1, 4))))
    assert kinds(evaluation) == ["job_is_finished"]
    assert evaluation.objective is None
    violation = evaluation.violations[0]
    assert "'b'" in violation.where
    assert (violation.lhs, violation.rhs) == (160, 200)


def contended(degradation=0.5, share=1.0):
    """Three servers; split jobs share cards of 2 GB/s, together on a server they have 4 GB/s."""
    rules = Contention(
        between_servers_bytes_per_s=2e9,
        within_server_bytes_per_s=4e9,
        degradation=degradation,
        share=share,
        server_overhead_s=0.01,
    )
    jobs = tuple(job(name, minibatches=1e4) for name in "abc")
    return instance(servers=(ServerGroup(count=3, capacity={"gpu": 4.0}),), jobs=jobs, contention=rules)


def test_contention_by_hand():
    runs = (
        run(0, 0, 3, (0, 1), (1, 1)),
        run(1, 1, 2, (1, 1), (2, 1)),
        run(2, 1, 1, (1, 2)),  # on one server, it meets nobody
    )
    evaluation = evaluate(contended(), schedule(*runs))
    assert evaluation.feasible
    alone = 20 / (0.1 + 1e8 / 2e9 + 0.02)
    shared = 20 / (0.1 + 1e8 / (2e9 / (2 + 0.5)) + 0.02)  # k = 2: 2 + 0.5 (2 - 1) times slower
    together = 20 / (0.1 + 1e8 / 4e9 + 0.01)
    assert evaluation.objective == pytest.approx((alone + 2 * shared + 2 * shared + together) / 1e4)


def test_contention_counts_the_most_crowded_server():
    runs = (
        run(0, 0, 1, (0, 1), (1, 1)),  # server 1: two split jobs; server 0: one
        run(1, 0, 1, (1, 1), (2, 1)),  # server 1: two; server 2: two
        run(2, 0, 1, (2, 1), (0, 1)),
    )
    rate = 20 / (0.1 + 1e8 / (2e9 / (1.2 + 0.5 * 0.2)) + 0.02)  # 0.6 · 2 at once
    assert evaluate(contended(share=0.6), schedule(*runs)).objective == pytest.approx(3 * rate / 1e4)
    rate = 20 / (0.1 + 1e8 / 2e9 + 0.02)  # 0.3 · 2 is less than itself
    assert evaluate(contended(share=0.3), schedule(*runs)).objective == pytest.approx(3 * rate / 1e4)


def test_loads_of_rings_by_hand():
    assert evaluate(star(), schedule(*RINGS)).feasible
    # Both jobs split: 1 + 1 GB/s on every arc of 1.5.
    both = schedule(RINGS[1], run(0, 2, 2, (0, 1), (1, 1), ring=(1, 2, 0, 2)))
    evaluation = evaluate(star(), both)
    assert kinds(evaluation) == ["bandwidth"] * 4
    assert {(v.where, v.lhs, v.rhs) for v in evaluation.violations} == {
        (f"arc {u} -> {v}, slot 2", 2e9, 1.5e9) for u, v in [(0, 2), (2, 0), (1, 2), (2, 1)]
    }
    # One after the other they fit.
    assert evaluate(star(), schedule(RINGS[1], run(0, 3, 1, (0, 1), (1, 1), ring=(1, 2, 0, 2)))).feasible


def test_a_ring_that_passes_twice_counts_twice():
    twice = run(1, 1, 2, (0, 2), (1, 2), ring=(0, 2, 1, 2, 1, 2))
    evaluation = evaluate(star(), schedule(twice))
    assert {(v.where, v.lhs) for v in evaluation.violations} == {
        (f"arc {a}, slot 1", 2e9) for a in ("1 -> 2", "2 -> 1")
    }


def test_loads_on_a_tree_by_hand():
    """Servers 0, 1 under switch 3, server 2 under switch 4; only one ring crosses between the switches."""
    links = ((0, 3, 2e9), (1, 3, 2e9), (2, 4, 2e9), (3, 4, 0.9e9))
    wide = instance(servers=(ServerGroup(count=3, capacity={"gpu": 4.0}),), network=Network(switches=2, links=links))
    near = run(0, 0, 2, (0, 1), (1, 1), ring=(0, 3, 1, 3))
    far = run(1, 1, 2, (1, 2), (2, 2), ring=(1, 3, 4, 2, 4, 3))
    assert evaluate(wide, schedule(near)).feasible
    crossing = evaluate(wide, schedule(near, far))
    assert [v.where for v in crossing.violations] == ["arc 3 -> 4, slot 1", "arc 4 -> 3, slot 1"]


def shared(*bandwidths):
    """Two jobs over both servers, each with the bandwidth given."""
    runs = [
        run(k, 1, 2, (0, 2), (1, 2), ring=(0, 2, 1, 2), bandwidth_bytes_per_s=rate) for k, rate in enumerate(bandwidths)
    ]
    return evaluate(star(bandwidth="shared"), schedule(*runs))


def test_shared_bandwidth_by_hand():
    evaluation = shared(1e9, 0.5e9)
    assert evaluation.feasible
    # Four workers: 0.1 s + 3/4 · 2 · 0.1 GB over what they have; both are finished or not by it.
    assert evaluation.details["finished_jobs"] == 2
    slow = shared(1.4e9, 0.1e9)
    assert slow.objective == pytest.approx(1 + 2 * 40 / (0.1 + 0.15e9 / 0.1e9) / 200)
    assert kinds(shared(1e9, 0.6e9)) == ["bandwidth"] * 4
    # On one server there is no ring: the job's own bandwidth counts.
    alone = evaluate(
        star(bandwidth="shared"), schedule(run(0, 0, 1, (0, 4)), run(1, 1, 1, (0, 4), bandwidth_bytes_per_s=1e3))
    )
    assert alone.objective == pytest.approx(2 * 160 / 200)


def changed(place, **changes):
    runs = [*GOOD]
    runs[place] = runs[place].model_copy(update=changes)
    return schedule(*runs)


MUTATIONS = [
    ("job_exists", instance(), changed(0, job=2), True),
    ("server_exists", instance(), changed(0, workers=((2, 1),)), True),
    ("server_exists", instance(), changed(0, workers=((-1, 1),)), True),
    ("count_is_positive", instance(), changed(0, workers=((0, 1), (1, 0))), True),
    ("run_has_workers", instance(), changed(0, workers=()), True),
    ("server_is_named_once", instance(), changed(0, workers=((0, 1), (0, 1))), True),
    ("job_has_arrived", instance(), changed(1, start=0), False),
    ("deadline_is_kept", instance(), changed(1, slots=3), False),
    ("deadline_is_kept", instance(), changed(2, slots=4), False),
    ("width_is_enough", instance(), changed(1, workers=((1, 1),)), False),
    ("width_is_allowed", instance(), changed(0, workers=((0, 3), (1, 2))), False),
    ("job_runs_once_at_a_time", instance(), changed(0, slots=2), False),
    ("bandwidth_is_the_jobs", instance(), changed(1, bandwidth_bytes_per_s=1e9), False),
    ("job_runs_in_one_piece", instance(preemptive=False), schedule(*GOOD), False),
    ("capacity", instance(), changed(2, workers=((0, 3),)), False),
    ("no_ring_without_a_network", instance(), changed(1, ring=(0, 1)), False),
    ("ring_follows_links", star(), changed(1, ring=(0, 1)), True),
    ("ring_follows_links", star(), changed(1, ring=(0, 2, 1, 7)), True),
    ("ring_follows_links", star(), changed(1, ring=(0, 0, 2, 1, 2)), True),
    ("ring_visits_its_servers", star(), changed(1, ring=(0, 2)), False),
    ("ring_visits_its_servers", star(), changed(1, ring=()), False),
    ("ring_has_bandwidth", star(bandwidth="shared"), schedule(*RINGS), True),
    ("job_is_finished", instance(objective="completion"), schedule(*GOOD[1:2]), True),
]


@for_each(("kind", "asked", "answer", "broken"), MUTATIONS)
def test_each_kind_of_violation_fires_alone(kind, asked, answer, broken):
    assert evaluate(instance(), schedule(*GOOD)).feasible
    evaluation = evaluate(asked, answer)
    assert set(kinds(evaluation)) == {kind}
    assert (evaluation.objective is None) == broken
    assert not evaluation.feasible
    assert kind in str(evaluation.violations[0])
    assert evaluate(asked, answer, exact=True).violations == evaluation.violations


def test_what_is_barely_allowed():
    """Touching runs, the deadline itself, full servers and arcs are no violation."""
    full = star(rate=1e9)
    fits = (run(0, 0, 1, (0, 4)), run(1, 1, 2, (0, 2), (1, 2), ring=(0, 2, 1, 2)), run(0, 1, 3, (0, 2)))
    for exact in (False, True):
        assert evaluate(full, schedule(*fits), exact).feasible
    assert evaluate(instance(preemptive=False), schedule(*GOOD[:2])).feasible


def test_other_instances_answers_are_refused():
    own = instance()
    assert evaluate(own, schedule(*GOOD, instance_digest=own.digest)).feasible
    with pytest.raises(SolutionError, match="was made for instance 'pair'"):
        evaluate(instance(slots=5), schedule(*GOOD, instance_digest=own.digest))


def test_a_hair_short_of_done_is_done_as_floats_are():
    a_third = instance(jobs=(job("a", minibatches=0.1 * 3, timing=TIMING),), slot_s=0.01)
    assert evaluate(a_third, schedule(run(0, 0, 3, (0, 1)))).details["finished_jobs"] == 1
    a_third = instance(jobs=(job("a", minibatches=0.3001, timing=TIMING),), slot_s=0.01)
    assert evaluate(a_third, schedule(run(0, 0, 3, (0, 1)))).details["finished_jobs"] == 0
