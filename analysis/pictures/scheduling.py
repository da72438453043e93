"""Pictures of schedules: a Gantt chart of the workers, and how much of the cluster is in use."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from mpl_toolkits.axes_grid1 import make_axes_locatable

from ddlopt.models.scheduling import Run, Schedule, SchedulingInstance

MOST_BOXES = 20_000
"""Beyond this number of boxes a Gantt chart is a grey wall."""

_COLOURS = (
    "#1f6fb4", "#d95f02", "#3a9d5d", "#8c4a9e", "#b8860b", "#5f6b76", "#c0392b", "#17a2b8", "#7f9f3f", "#c76aa3",
)  # fmt: skip
# A definition.
_HOUR_S = 3600.0


class Box(NamedTuple):
    """A job on neighbouring worker places of the chart, from slot ``start`` for ``slots``."""

    job: int
    start: int
    slots: int
    lowest: int
    places: int


def boxes(instance: SchedulingInstance, schedule: Schedule) -> tuple[list[Box], list[int]]:
    """Boxes of a Gantt chart, and for every server the number of its lowest place (one more at the end).

    A server has as many places as it ever has workers; a run takes the lowest that are free.
    """
    by_server: dict[int, list[tuple[Run, int]]] = defaultdict(list)
    for run in schedule.runs:
        for server, count in run.workers:
            by_server[server].append((run, count))
    drawn: list[Box] = []
    floors = [0]
    for server in range(instance.server_count):
        until: list[int] = []
        for run, count in sorted(by_server[server], key=lambda pair: (pair[0].start, pair[0].job)):
            free = [place for place, end in enumerate(until) if end <= run.start][:count]
            free += range(len(until), len(until) + count - len(free))
            until += [0] * (max(free) + 1 - len(until))
            for place in free:
                until[place] = run.end
            drawn += (Box(run.job, run.start, run.slots, floors[-1] + low, size) for low, size in _stretches(free))
        floors.append(floors[-1] + max(1, len(until)))
    return drawn, floors


def _stretches(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(first, length) of the runs of consecutive numbers in an increasing sequence."""
    low = places[0]
    for here, following in zip(places, [*places[1:], -1], strict=True):
        if following != here + 1:
            yield low, here + 1 - low
            low = following


def busy(instance: SchedulingInstance, schedule: Schedule) -> npt.NDArray[np.float64]:
    """(T,) part of the cluster in use in every slot, of the resource that is used most in it."""
    used = np.zeros((instance.slots + 1, len(instance.resources)))
    for run in schedule.runs:
        amount = run.width * instance.demand[run.job]
        used[run.start] += amount
        used[run.end] -= amount
    part: npt.NDArray[np.float64] = (np.cumsum(used[:-1], axis=0) / instance.capacity.sum(axis=0)).max(axis=1)
    return part.clip(0, 1)


def draw(axes: Any, instance: SchedulingInstance, schedule: Schedule) -> None:
    """Draw a Gantt chart, a row for every worker place by server, and below it the part of the cluster in use.

    Jobs have colours in turn, and their names where there are few. Time is in hours, or in seconds where the horizon
    is short. Beyond ``MOST_BOXES`` boxes only the use of the cluster is drawn.
    """
    horizon_s = instance.slots * instance.slot_s
    unit, name = (_HOUR_S, "h") if horizon_s >= 2 * _HOUR_S else (1.0, "s")
    slot = instance.slot_s / unit
    drawn, floors = boxes(instance, schedule)
    if len(drawn) > MOST_BOXES:
        drawn = []
    shapes = [Rectangle((b.start * slot, b.lowest), b.slots * slot, b.places) for b in drawn]
    colours = [_COLOURS[b.job % len(_COLOURS)] for b in drawn]
    few = len(drawn) <= 400
    axes.add_collection(
        PatchCollection(shapes, facecolors=colours, edgecolors="white" if few else "none", linewidths=0.6)
    )
    if len(drawn) <= 60:
        for b in drawn:
            axes.text(
                (b.start + b.slots / 2) * slot, b.lowest + b.places / 2, instance.jobs[b.job].name,
                ha="center", va="center", fontsize=6, color="white", clip_on=True,
            )  # fmt: skip
    if 1 < instance.server_count <= 64:
        axes.hlines(floors[1:-1], 0, horizon_s / unit, color="black", linewidth=0.5)
    axes.set_xlim(0, horizon_s / unit)
    axes.set_ylim(0, floors[-1])
    axes.set_ylabel("workers" if instance.server_count == 1 else "workers by server", fontsize=8)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.tick_params(labelsize=7, labelbottom=False)
    below = make_axes_locatable(axes).append_axes("bottom", size="18%", pad=0.12, sharex=axes)
    edges = np.arange(instance.slots + 1) * slot
    below.stairs(busy(instance, schedule), edges, fill=True, color="#b9d3e8")
    below.set_ylim(0, 1)
    below.set_yticks([0, 1], ["0", "100 %"])
    below.tick_params(labelsize=7)
    below.set_xlabel(f"time [{name}]", fontsize=8)
    below.set_ylabel("in use", fontsize=8)
