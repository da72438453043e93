"""Every width and order of a few rigid jobs, placed one after the other wherever there is room; drawn instances."""

import itertools
import random
from fractions import Fraction

from ddlopt.models.cluster import JobsInstance


def brute_force(instance):
    """The optimum of rigid jobs: some order of placing them as early as can be makes every schedule that is active."""
    best = None
    for widths in itertools.product(*(job.widths for job in instance.jobs)):
        for order in itertools.permutations(range(len(widths))):
            busy, ends = [], [None] * len(widths)
            for place in order:
                job = instance.jobs[place]
                length = job.length_s(widths[place])
                moments = sorted({Fraction(job.arrival_s), *(end for _, end, _ in busy)})
                start = next(
                    at for at in moments
                    if at >= Fraction(job.arrival_s) and room(busy, at, at + length) + widths[place] <= instance.servers
                )  # fmt: skip
                busy.append((start, start + length, widths[place]))
                ends[place] = start + length
            value = cost(instance, ends)
            best = value if best is None else min(best, value)
    return best


def room(busy, start, end):
    """The most servers that are busy at any time."""
    moments = [start, *(begun for begun, _, _ in busy if start < begun < end)]
    return max(sum(count for a, b, count in busy if a <= at < b) for at in moments)


def cost(instance, ends):
    if instance.objective == "makespan":
        return max(ends)
    late = instance.objective == "weighted_tardiness"
    return sum(
        Fraction(job.weight) * max(Fraction(0), end - Fraction(job.deadline_s if late else 0))
        for job, end in zip(instance.jobs, ends, strict=True)
    )


def drawn(seed, mode="rigid", most=3):
    """Odd jobs: step times that rise, widths that cannot be, ties, equal jobs, fractions of seconds, no weight."""
    draw = random.Random(f"jobs {seed}")
    servers = draw.randint(1, 4)
    jobs = []
    for place in range(draw.randint(1, most)):
        steps = [draw.choice((None, 1, 2, 2.5, 3, 5, 0.1)) for _ in range(draw.randint(1, servers))]
        steps[draw.randrange(len(steps))] = draw.choice((1, 4, 0.3))
        arrival = draw.choice((0, 0, 1, 2.5))
        job = {
            "name": f"j{place}", "iterations": draw.choice((1, 1, 2, 1.5)), "arrival_s": arrival,
            "weight": draw.choice((0, 1, 1, 3, 0.1)), "deadline_s": arrival + draw.choice((0, 2, 5)), "step_s": steps,
        }  # fmt: skip
        if jobs and draw.random() < 0.3:
            job = jobs[-1] | {"name": f"j{place}"}
        jobs.append(job)
    return JobsInstance.from_data(
        {
            "name": f"drawn-{seed}",
            "servers": servers,
            "jobs": jobs,
            "mode": mode,
            "slot_s": draw.choice((1, 2, 1.5)) if mode == "slots" else None,
            "objective": draw.choice(("makespan", "weighted_completion", "weighted_tardiness")),
        }
    )
