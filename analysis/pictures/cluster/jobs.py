"""Pictures of schedules of cluster jobs: a rectangle for each stretch, as high as it has servers."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from ddlopt.models.cluster import JobsInstance, JobsSchedule

Racks = Sequence[Mapping[int, int]]
"""Of each job: racks and how many of their servers it has."""


def draw(
    axes: Any, instance: JobsInstance, solution: JobsSchedule, racks: Mapping[int, range] | None = None, of: Racks = ()
) -> None:
    """Draw servers over time; a job whose servers are apart is drawn in pieces.

    With ``racks``, the rows of each rack, jobs have the servers there that ``of`` says, and a line parts the racks.
    """
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    colours = colormaps["tab20"]
    last = 0.0
    for job, start, end, low, high in pieces(instance, solution, racks, of):
        axes.add_patch(Rectangle((start, low), end - start, high - low, facecolor=colours(job % 20), edgecolor="white"))
        axes.text((start + end) / 2, (low + high) / 2, str(job), ha="center", va="center", fontsize=7)
        last = max(last, end)
    for rows in racks.values() if racks else ():
        if rows.start:
            axes.axhline(rows.start, color="black", linewidth=0.6)
    axes.set_xlim(0, last)
    axes.set_ylim(0, instance.servers)
    axes.set_xlabel("time (s)", fontsize=8)
    axes.set_ylabel("servers, with the number of their job", fontsize=8)
    axes.tick_params(labelsize=7)


def pieces(
    instance: JobsInstance, solution: JobsSchedule, racks: Mapping[int, range] | None = None, of: Racks = ()
) -> list[tuple[int, float, float, int, int]]:
    """Job, start, end, and servers from and to: each stretch gets the lowest ones that are free, rack by rack."""
    slot = None if instance.slot_s is None else Fraction(instance.slot_s)
    stretches = []
    for place, (job, own) in enumerate(zip(instance.jobs, solution.runs, strict=True)):
        for run in own:
            start = Fraction(run.start) * (slot or 1)
            end = start + (job.length_s(run.servers) if slot is None else slot)
            wanted = sorted(of[place].items()) if racks else [(0, run.servers)]
            stretches.append((start, place, end, wanted))
    rows = racks or {0: range(instance.servers)}
    free_at = [Fraction(0)] * instance.servers
    found = []
    for start, place, end, wanted in sorted(stretches):
        for rack, count in wanted:
            free = [server for server in rows[rack] if free_at[server] <= start][:count]
            first = 0
            for number, server in enumerate(free):
                free_at[server] = end
                if number + 1 == len(free) or free[number + 1] != server + 1:
                    found.append((place, float(start), float(end), free[first], server + 1))
                    first = number + 1
    return found
