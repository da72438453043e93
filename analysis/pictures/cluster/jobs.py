"""Pictures of schedules of cluster jobs: a rectangle for each stretch, as high as it has servers."""

from fractions import Fraction
from typing import Any

from ddlopt.models.cluster import JobsInstance, JobsSchedule


def draw(axes: Any, instance: JobsInstance, solution: JobsSchedule) -> None:
    """Draw servers over time; a job whose servers are apart is drawn in pieces."""
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    colours = colormaps["tab20"]
    last = 0.0
    for job, start, end, low, high in pieces(instance, solution):
        axes.add_patch(Rectangle((start, low), end - start, high - low, facecolor=colours(job % 20), edgecolor="white"))
        axes.text((start + end) / 2, (low + high) / 2, str(job), ha="center", va="center", fontsize=7)
        last = max(last, end)
    axes.set_xlim(0, last)
    axes.set_ylim(0, instance.servers)
    axes.set_xlabel("time (s)", fontsize=8)
    axes.set_ylabel("servers, with the number of their job", fontsize=8)
    axes.tick_params(labelsize=7)


def pieces(instance: JobsInstance, solution: JobsSchedule) -> list[tuple[int, float, float, int, int]]:
    """Job, start, end, and servers from and to: each stretch gets the lowest ones that are free."""
    slot = None if instance.slot_s is None else Fraction(instance.slot_s)
    stretches = []
    for place, (job, own) in enumerate(zip(instance.jobs, solution.runs, strict=True)):
        for run in own:
            start = Fraction(run.start) * (slot or 1)
            end = start + (job.length_s(run.servers) if slot is None else slot)
            stretches.append((start, place, end, run.servers))
    free_at = [Fraction(0)] * instance.servers
    found = []
    for start, place, end, count in sorted(stretches):
        free = [server for server, until in enumerate(free_at) if until <= start][:count]
        first = 0
        for number, server in enumerate(free):
            free_at[server] = end
            if number + 1 == len(free) or free[number + 1] != server + 1:
                found.append((place, float(start), float(end), free[first], server + 1))
                first = number + 1
    return found
