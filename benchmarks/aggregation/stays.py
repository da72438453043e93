"""Jobs that come and go: what it changes in optima and in the order of rules, and what slots given anew would gain.

A job keeps its slots while it is there. Were all slots given anew whenever a job comes or goes, each time between
two such moments would be a problem of its own, with weights that are the job's times that part of its stay.
"""

from itertools import pairwise
from statistics import mean

from benchmarks.aggregation.late import JOBS, RULES, changed, unaware
from benchmarks.harness import Benchmark, Option
from ddlopt.instances.generators.aggregation import generate
from ddlopt.models.aggregation.slots.instance import SlotsInstance
from ddlopt.solvers.aggregation.slots.exact import opened
from ddlopt.solvers.aggregation.slots.rules import SlotRule

LEVELS: dict[str, dict[str, float]] = {
    "all 24 jobs": {},
    "12 at once": {"at_once": 12.0},
    "6 at once": {"at_once": 6.0},
    "3 at once": {"at_once": 3.0},
}


def changes(asked):
    """The same jobs, fewer and fewer of them at once: optima, and ratios of plans to them, means over seeds."""
    yield from changed(asked, "there are", LEVELS)


def anew(asked):
    """Slots that are kept beside slots given anew whenever a job comes or goes: ratios to those, means over seeds."""
    for level, options in LEVELS.items():
        if not options:
            continue
        rows = []
        for seed in range(1, asked.seeds + 1):
            instance = generate("slots", seed, **JOBS | options)
            pieces = list(_between(instance))
            best = [opened().solve(piece, asked.limits) for piece in pieces]
            least = sum(result.objective for result in best)
            kept = opened().solve(instance, asked.limits)
            always = instance.model_copy(
                update={"jobs": tuple(job.model_copy(update={"stay": None}) for job in instance.jobs)}
            )
            rules = {
                rule: sum(SlotRule(rule).solve(piece, asked.limits).objective for piece in pieces) / least
                for rule in RULES
            }
            rows.append(
                {
                    "pieces": len(pieces),
                    "kept": kept.objective / least,
                    "as if all were always there": unaware(opened().solve(always, asked.limits).solution, instance)
                    / least,
                    **rules,
                }
            )
        yield {"there are": level} | {name: f"{mean(row[name] for row in rows):.3f}" for name in rows[0]}


def _between(instance: SlotsInstance):
    """What is there between each two moments at which jobs come or go."""
    stays = [job.stay for job in instance.jobs]
    for begins_s, ends_s in pairwise(sorted({time for stay in stays for time in (stay.begins_s, stay.ends_s)})):
        jobs = tuple(
            job.model_copy(
                update={
                    "weight": job.weight * (ends_s - begins_s) / (job.stay.ends_s - job.stay.begins_s),
                    "stay": None,
                }
            )
            for job in instance.jobs
            if job.is_there(begins_s)
        )
        if jobs:
            yield instance.model_copy(update={"jobs": jobs})


BENCH = Benchmark(
    changes, anew,
    pages=False,
    time_limit=Option(20.0, quick=2.0),
    gap=Option(1e-3),
    seeds=Option(10, quick=1),
)  # fmt: skip
