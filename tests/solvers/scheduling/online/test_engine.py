"""The simulation under the online heuristics, on policies that choose at random or by a fixed plan."""

import numpy as np
import pytest
from one_server_cases import LINEAR, job
from volume import for_each

from ddlopt.models.errors import SolverError
from ddlopt.models.scheduling import Capped, RingTiming, SchedulingInstance, ServerGroup, evaluate
from ddlopt.models.scheduling.pool import Placer
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.online.engine import UnfinishedError, simulate

RING = RingTiming(gradient_bytes=3.0, bandwidth_bytes_per_s=4.0, forward_s_per_sample=0.5, overhead_s=0.1)


def clock(time_s=None):
    return Clock(Limits(time_s=time_s), None)


def instance(jobs, slots=10, gpus=(2, 2), **more):
    servers = tuple(ServerGroup(capacity={"gpu": count}) for count in gpus)
    return SchedulingInstance(name="few", slots=slots, slot_s=1.0, servers=servers, jobs=tuple(jobs), **more)


class Planned:
    """Fixed widths by slot; records what it was shown."""

    def __init__(self, plan):
        self.plan, self.seen, self.served = plan, {}, []

    def choose(self, state):
        self.served.append(state.served.tolist())
        self.seen[state.slot] = state.active.tolist(), state.done.copy(), state.capacity.copy()
        return self.plan.get(state.slot, {})


class Admitting:
    """Runs whatever fits, in order; records what did."""

    def __init__(self):
        self.admitted = []

    def choose(self, state):
        found = state.admit(state.active.tolist(), [1] * len(state.active))
        self.admitted.append(list(found))
        return found


class Random:
    """Any widths that fit, in any order."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def choose(self, state):
        jobs = self.rng.permutation(state.active)
        low, high = state.rates.narrowest[jobs], state.rates.widest[jobs]
        widths = self.rng.integers(low, high + 1) * self.rng.integers(0, 2, len(jobs))
        return state.admit(jobs, widths, skip=bool(self.rng.integers(2)), shrink=bool(self.rng.integers(2)))


def random_instance(rng, **more):
    slots = int(rng.integers(2, 12))
    jobs = []
    for number in range(int(rng.integers(1, 7))):
        widest, arrival = int(rng.integers(1, 5)), int(rng.integers(slots))
        deadline = int(rng.integers(arrival + 1, slots + 1)) if rng.integers(2) else None
        jobs.append(
            job(
                f"j{number}",
                widest,
                float(rng.uniform(0.5, 12)),
                min_workers=int(rng.integers(1, widest + 1)),
                arrival=arrival,
                deadline=deadline,
                timing=RING if rng.integers(2) else LINEAR,
                utility=Capped(value=float(rng.uniform(1, 5))),
            )
        )
    gpus = (*rng.integers(1, 4, int(rng.integers(1, 4))), 4)
    return instance(jobs, slots, tuple(map(float, gpus)), **more)


def test_jobs_are_shown_from_arrival_to_deadline_while_unfinished():
    jobs = [job("late", 1, 2.0, arrival=4), job("short", 2, 2.0, deadline=2), job("first", 1, 1.0)]
    policy = Planned({0: {1: 1, 2: 1}, 4: {0: 1}, 6: {0: 1}})
    outcome = simulate(instance(jobs), policy, clock(), "planned")
    assert {slot: seen[0] for slot, seen in policy.seen.items()} == {0: [1, 2], 1: [1], 4: [0], 5: [0], 6: [0]}
    assert outcome.done.tolist() == [2.0, 1.0, 1.0]
    assert [(run.job, run.start, run.slots) for run in outcome.schedule.runs] == [
        (1, 0, 1),
        (2, 0, 1),
        (0, 4, 1),
        (0, 6, 1),
    ]


@pytest.mark.parametrize("preemptive", [True, False])
def test_any_policy_gives_a_schedule_that_stands_the_check(preemptive):
    rng = np.random.default_rng(5)
    for seed in range(150):
        drawn = random_instance(rng, preemptive=preemptive)
        outcome = simulate(drawn, Random(seed), clock(), "random")
        found = evaluate(drawn, outcome.schedule)
        assert not found.violations
        parts = [min(1.0, done / one.minibatches) for done, one in zip(outcome.done, drawn.jobs, strict=True)]
        utility = sum(one.utility.of(part) for part, one in zip(parts, drawn.jobs, strict=True))
        assert float(found.objective) == pytest.approx(utility, abs=1e-9)


def test_what_has_started_runs_on_where_jobs_are_not_preemptive():
    jobs = [job("long", 3, 6.0), job("other", 4, 4.0)]
    policy = Planned({0: {0: 2}, 1: {1: 2}, 2: {}, 3: {1: 4}})
    outcome = simulate(instance(jobs, preemptive=False), policy, clock(), "planned")
    assert [(run.job, run.start, run.slots, run.width) for run in outcome.schedule.runs] == [(0, 0, 3, 2), (1, 1, 2, 2)]
    assert policy.seen[1][0] == [1]
    assert policy.seen[1][2].tolist() == [2.0]


def test_a_pool_in_tiny_units_holds_no_more():
    """What the check lets pass is a part of the capacity, not so many units of it."""
    few = instance([job(f"{k}", 1, 2.0) for k in range(4)], gpus=(2,))
    tiny = few.model_copy(
        update={
            "servers": (ServerGroup(capacity={"gpu": 2e-10}),),
            "jobs": tuple(each.model_copy(update={"demand": {"gpu": 1e-10}}) for each in few.jobs),
        }
    )
    policy = Admitting()
    assert evaluate(tiny, simulate(tiny, policy, clock(), "admitting").schedule).feasible
    assert policy.admitted[0] == [0, 1]


def test_equal_neighbours_are_one_run_and_keep_their_workers():
    jobs = [job("steady", 3, 30.0), job("comes", 1, 30.0), job("changes", 2, 30.0)]
    plan = {0: {0: 2, 2: 2}, 1: {0: 2, 1: 1, 2: 1}, 2: {0: 2, 1: 1}, 3: {0: 2, 2: 2}}
    policy = Planned(plan)
    outcome = simulate(instance(jobs, slots=4), policy, clock(), "planned")
    assert policy.served == [[0, 0, 0], [2, 0, 2], [4, 1, 3], [6, 2, 3]]
    runs = {(run.job, run.start): (run.slots, run.workers) for run in outcome.schedule.runs}
    assert runs[0, 0] == (4, ((0, 2),))
    assert runs[1, 1] == (2, ((1, 1),))
    assert set(runs) == {(0, 0), (1, 1), (2, 0), (2, 1), (2, 3)}


@pytest.mark.parametrize("objective", ["makespan", "completion"])
def test_jobs_left_over_are_an_error_where_all_must_be_finished(objective):
    few = instance([job("a", 2, 4.0), job("b", 1, 3.0)], slots=3, objective=objective)
    with pytest.raises(UnfinishedError, match=r"on 'few' does not finish all jobs within the horizon.*jobs\[1\]"):
        simulate(few, Planned({t: {0: 2} for t in range(2)}), clock(), "planned")
    with pytest.raises(UnfinishedError, match="in the time limit"):
        simulate(few, Planned({}), clock(1e-9), "planned")


def test_time_that_is_up_leaves_what_there_is():
    class Slow(Planned):
        def choose(self, state):
            watch.interrupted = state.slot == 2
            return {0: 1}

    watch = clock()
    outcome = simulate(instance([job("a", 2, 9.0)]), Slow({}), watch, "slow")
    assert outcome.cut_short
    assert outcome.done.tolist() == [3.0]
    assert [(run.start, run.slots) for run in outcome.schedule.runs] == [(0, 3)]


@for_each(
    ("widths", "message"),
    [
        ({0: 3}, "3 workers for job 0 are not allowed"),
        ({1: 1}, "1 workers for job 1 are not allowed"),
        ({2: 1}, "1 workers for job 2 are not allowed"),
        ({0: 2, 1: 4}, "4 workers of job 1 do not fit|2 workers of job 0 do not fit"),
    ],
)
def test_widths_that_cannot_be_are_refused(widths, message):
    few = instance([job("a", 2, 9.0), job("b", 4, 9.0, min_workers=2), job("c", 1, 1.0, arrival=3)])
    with pytest.raises(SolverError, match=message):
        simulate(few, Planned({0: widths}), clock(), "planned")


def test_the_placer_splits_no_job_that_a_server_holds():
    rng = np.random.default_rng(1)
    for _ in range(100):
        gpus = rng.integers(1, 6, 4)
        total = int(gpus.sum())
        few = instance([job(f"j{k}", total, 1.0) for k in range(5)], gpus=tuple(map(float, gpus)))
        placer, before = Placer(few), {}
        for _ in range(6):
            widths = {}
            for number in rng.permutation(5).tolist():
                width = before.get(number, (0,))[0] if rng.integers(2) else int(rng.integers(0, total + 1))
                width = min(width, total - sum(widths.values()))
                if width:
                    widths[number] = width
            free = gpus.copy()
            kept = {j: w for j, (w, _) in before.items() if widths.get(j) == w}
            for j in kept:
                for server, count in before[j][1]:
                    free[server] -= count
            fresh = [(widths[j], j) for j in widths if j not in kept]
            places = placer.place(widths)
            used = np.zeros(4, dtype=int)
            for j, workers in places.items():
                assert sum(count for _, count in workers) == widths[j]
                for server, count in workers:
                    used[server] += count
            assert set(places) == set(widths)
            assert (used <= gpus).all()
            assert all(places[j] == before[j][1] for j in kept)
            if len(fresh) == 1 and free.max() >= fresh[0][0]:
                ((server, _),) = places[fresh[0][1]]
                assert free[server] == free[free >= fresh[0][0]].min()
            before = {j: (widths[j], places[j]) for j in widths}
