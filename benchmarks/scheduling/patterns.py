"""Column generation over patterns against the compact time-indexed model, on finer and finer slots of one day.

50 jobs with few arrivals and deadlines: the same work, cut into 20 to 2000 slots. Beside it what decides how good
patterns are: the same jobs with arrivals and deadlines anywhere, so that intervals are short and many, and fixed widths
that fill the cluster badly, which only patterns know. All times include building the model; one run, one thread.
"""

import numpy as np

from benchmarks.harness import Benchmark, Option, shown, timed
from ddlopt.frontier.scheduling.configurations.configurations import ColumnGeneration
from ddlopt.models.scheduling import Capped, Job, Logarithmic, RingTiming, SchedulingInstance, ServerGroup
from ddlopt.models.scheduling.formulations.time_indexed.time_indexed import TimeIndexed
from ddlopt.models.scheduling.problem import PROBLEM
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import Exact, lp_relaxation

DAY_S = 86_400.0
JOBS = 50
KINDS = {
    "few events": {},
    "events anywhere": {"anywhere": True},
    "fixed widths": {"fixed": True},
}


def one_day(slots, anywhere=False, fixed=False, seed=0):
    """50 jobs that together want twice what there is.

    They arrive at 5 times and leave at 5 others, or ``anywhere`` in the day. There are 64 GPUs for 1 to 16 workers, or
    16 for jobs with a ``fixed`` number of 5 to 11 workers.
    """
    rng = np.random.default_rng(seed)
    jobs, places = [], 16 if fixed else 64
    for number in range(JOBS):
        widest = int(rng.choice([5, 6, 7, 9, 11] if fixed else [1, 2, 4, 8, 16]))
        timing = RingTiming(
            gradient_bytes=rng.uniform(3e7, 6e8),
            bandwidth_bytes_per_s=1.25e9,
            reduction_bytes_per_s=1e10,
            forward_s_per_sample=0.002,
            batch_samples=32,
            backward_s=rng.uniform(0.02, 0.2),
        )
        alone_s = 2 * DAY_S * places / JOBS / widest * rng.lognormal(-0.5, 1.0)
        value = widest * rng.uniform(0.5, 2.0)
        arrival, deadline = rng.uniform(0, 0.5), rng.uniform(0.55, 1)
        if not anywhere:
            arrival, deadline = np.floor(arrival * 10) / 10, np.ceil(deadline * 10) / 10
        jobs.append(
            Job(
                name=f"job-{number}",
                arrival=int(arrival * slots),
                deadline=int(np.ceil(deadline * slots)),
                min_workers=widest if fixed else 1,
                max_workers=widest,
                timing=timing,
                minibatches=float(timing.minibatches_per_s(widest)) * alone_s,
                utility=Capped(value=value) if number % 2 else Logarithmic(value=value),
            )
        )
    return SchedulingInstance(
        name=f"one-day-{slots}",
        slots=slots,
        slot_s=DAY_S / slots,
        servers=(ServerGroup(count=places // 8, capacity={"gpu": 8}),),
        jobs=tuple(jobs),
    )


def cases(asked):
    """Kind of day, its number of slots, and a maker of its instance."""
    found = [("few events", slots) for slots in asked.slots]
    found += [(kind, asked.other_slots) for kind in KINDS if kind != "few events"]
    return [(kind, slots, lambda slots=slots, kind=kind: one_day(slots, **KINDS[kind])) for kind, slots in found]


def bounds(asked):
    """Upper bounds: prices on slots (no solver), the compact relaxation (on the envelope, few tangents), patterns."""
    ColumnGeneration(integer_s=0.0).solve(one_day(10), Limits())
    for kind, slots, drawn in cases(asked):
        prices, prices_took = timed(PROBLEM.tightest_bound, drawn())
        compact, took = timed(lp_relaxation, TimeIndexed(widths="envelope", tangents=40), drawn())
        told = []
        # Without time for an integer program it ends with the rounds.
        result = ColumnGeneration(integer_s=0.0).solve(drawn(), Limits(gap=1e-9), progress=told.append)
        points = [point for point in told if point.bound is not None]
        least = min(point.bound for point in points)
        ours_s = next(point.time_s for point in points if point.bound == least)
        yield {
            "day": kind, "slots": slots, "prices on slots": f"{prices:.4f}", "prices s": prices_took.wall_s,
            "compact LP": f"{compact.objective:.4f}", "compact s": took.wall_s, "patterns": f"{least:.4f}",
            "patterns s": ours_s, "rounds": result.details["rounds"], "compact s / ours": f"{took.wall_s / ours_s:.1f}",
        }  # fmt: skip


def schedules(asked):
    """Seconds until a schedule is known to be within the gap, or the gap that is left when the time is up."""
    for kind, slots, drawn in cases(asked):
        compact = Exact("compact", "scheduling", TimeIndexed()).solve(drawn(), asked.limits)
        ours = ColumnGeneration().solve(drawn(), asked.limits)
        yield {
            "day": kind, "slots": slots, "compact: gap": shown(compact.gap, ".4%"), "compact s": compact.runtime_s,
            "column generation: gap": shown(ours.gap, ".4%"), "column generation s": ours.runtime_s,
            "compact s / ours": f"{compact.runtime_s / ours.runtime_s:.1f}",
        }  # fmt: skip


BENCH = Benchmark(
    bounds, schedules,
    slots=Option([20, 50, 100, 200, 500, 1000, 2000], "of a day with few events", quick=[20]),
    other_slots=Option(100, "of the other days", quick=20),
    gap=Option(1e-3),
    time_limit=Option(60.0, quick=2.0),
)  # fmt: skip
