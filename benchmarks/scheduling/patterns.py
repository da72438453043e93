"""Column generation over patterns against the compact time-indexed model, on finer and finer slots of one day.

50 jobs with few arrivals and deadlines: the same work, cut into 20 to 2000 slots. Beside it what decides how good
patterns are: the same jobs with arrivals and deadlines anywhere, so that intervals are short and many, and fixed widths
that fill the cluster badly, which only patterns know. The first table is about bounds: prices on slots (without a
solver), the linear relaxation of the compact model (widths on the envelope, which loses nothing, and few tangents,
which loses little) and the rounds of column generation. The second is about schedules: the time until one is known to
be within the gap, or the gap that is left when the time is up. All times include building the model; one run, one
thread.
"""

import argparse
import time

import numpy as np
from rich.console import Console
from rich.table import Table

from ddlopt.models.scheduling import Capped, Job, Logarithmic, RingTiming, SchedulingInstance, ServerGroup
from ddlopt.models.scheduling.bounds import bound as combinatorial_bound
from ddlopt.models.scheduling.time_indexed import TimeIndexed
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import Exact, lp_relaxation
from ddlopt.solvers.scheduling.configurations import ColumnGeneration

SLOTS = (20, 50, 100, 200, 500, 1000, 2000)
DAY_S = 86_400.0
JOBS = 50
ONE_OF_EACH = 100


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


def timed(work):
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def table_of(title, *columns):
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def bounds(console, cases):
    columns = ("slots", "prices on slots", "s", "compact LP", "s", "patterns", "s", "rounds", "compact s / ours")
    table = table_of("upper bounds", "day", *columns)
    for kind, count in cases:
        instance = one_day(count, **KINDS[kind])
        prices, prices_s = timed(lambda instance=instance: combinatorial_bound(instance))
        compact, compact_s = timed(
            lambda instance=instance: lp_relaxation(TimeIndexed(widths="envelope", tangents=40), instance)
        )
        told = []
        # Without time for an integer program it ends with the rounds. A new instance, for the prices on slots are
        # part of its work, and are known for the other.
        again = one_day(count, **KINDS[kind])
        result = ColumnGeneration(integer_s=0.0).solve(again, Limits(gap=1e-9), progress=told.append)
        points = [point for point in told if point.bound is not None]
        least = min(point.bound for point in points)
        ours_s = next(point.time_s for point in points if point.bound == least)
        row = (f"{prices:.4f}", f"{prices_s:.2f}", f"{compact.objective:.4f}", f"{compact_s:.2f}")
        row += (f"{least:.4f}", f"{ours_s:.2f}", f"{result.details['rounds']}", f"{compact_s / ours_s:.1f}")
        table.add_row(kind, str(count), *row)
    console.print(table)


def schedules(console, cases, gap, time_limit_s):
    columns = ("slots", "compact: gap", "s", "column generation: gap", "s", "compact s / ours")
    table = table_of(f"schedules within {gap:.2%}, or as near as {time_limit_s:g} s take them", "day", *columns)
    limits = Limits(time_s=time_limit_s, gap=gap)
    for kind, count in cases:
        compact = Exact("compact", "scheduling", TimeIndexed()).solve(one_day(count, **KINDS[kind]), limits)
        ours = ColumnGeneration().solve(one_day(count, **KINDS[kind]), limits)
        row = (shown(compact.gap), f"{compact.runtime_s:.1f}", shown(ours.gap), f"{ours.runtime_s:.1f}")
        table.add_row(kind, str(count), *row, f"{compact.runtime_s / ours.runtime_s:.1f}")
    console.print(table)


def shown(gap):
    return "none" if gap is None else f"{gap:.4%}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short horizons only")
    parser.add_argument("--gap", type=float, default=1e-3)
    parser.add_argument("--time-limit", type=float, default=60.0, metavar="S")
    chosen = parser.parse_args()
    console = Console(width=150)
    ColumnGeneration(integer_s=0.0).solve(one_day(10), Limits())  # compiles
    cases = [("few events", slots) for slots in (SLOTS[:3] if chosen.quick else SLOTS)]
    cases += [(kind, ONE_OF_EACH) for kind in KINDS if kind != "few events"]
    bounds(console, cases)
    schedules(console, cases, chosen.gap, chosen.time_limit)


if __name__ == "__main__":
    main()
