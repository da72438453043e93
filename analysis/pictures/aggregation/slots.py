"""Pictures of slots shared among jobs: who has which part of every switch, and what memory and links are worth."""

from typing import Any

import matplotlib as mpl

from ddlopt.models.aggregation.slots.instance import SlotPlan, SlotsInstance

_FREE = "#e6e6e6"
# Part of a bar in which a name fits.
_LEAST_NAMED = 0.1
_COLOURS = [k for k in range(20) if k not in (14, 15)]
"""Of the palette all but greys, which mean that nobody has it."""


def draw(axes: Any, instance: SlotsInstance, solution: SlotPlan) -> None:
    """One bar a switch, cut into the jobs' parts of its slots, and one a link, cut into their parts of its bandwidth.

    A colour is a job; what is grey is free. Jobs that fall back are counted below. Where jobs come and go, each bar is
    at the time at which most is taken.
    """
    count = len(instance.jobs)
    colours = mpl.colormaps["tab20"]([_COLOURS[j % len(_COLOURS)] for j in range(count)])
    rows = [*_memory(instance, solution), *_links(instance, solution)]
    for place, (_, shares) in enumerate(rows):
        left = 0.0
        for j, share in shares:
            axes.barh(place, share, left=left, color=colours[j], edgecolor="white", linewidth=0.4, height=0.8)
            if share > _LEAST_NAMED:
                label = instance.jobs[j].name
                axes.text(left + share / 2, place, label, ha="center", va="center", fontsize=5, clip_on=True)
            left += share
        axes.barh(place, max(0.0, 1 - left), left=left, color=_FREE, height=0.8)
    axes.set_yticks(range(len(rows)), [name for name, _ in rows], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.tick_params(axis="x", labelsize=7)
    back = [job.name for job, rate in zip(instance.jobs, solution.rates_bytes_per_s, strict=True) if rate is None]
    note = f"; {len(back)} of {count} jobs fall back on servers" if back else ""
    axes.set_xlabel(f"part of slots or bandwidth, by job{note}", fontsize=8)


_Row = tuple[str, list[tuple[int, float]]]


def _memory(instance: SlotsInstance, solution: SlotPlan) -> list[_Row]:
    rows = []
    for s, switch in enumerate(instance.switches):
        shares = [
            (j, solution.slots[j][job.switches.index(s)] / switch.slots)
            for j, job in enumerate(instance.jobs)
            if s in job.switches and solution.slots[j][job.switches.index(s)] > 0
        ]
        rows.append((f"{switch.name}\n{switch.slots} slots", _fullest(instance, shares)))
    return rows


def _links(instance: SlotsInstance, solution: SlotPlan) -> list[_Row]:
    rows = []
    for e, link in enumerate(instance.links):
        shares = [
            (j, job.links.count(e) * rate / link.bandwidth_bytes_per_s)
            for j, (job, rate) in enumerate(zip(instance.jobs, solution.rates_bytes_per_s, strict=True))
            if rate is not None and e in job.links
        ]
        # 8 bits a byte, in giga
        name = f"{link.name}\n{8e-9 * link.bandwidth_bytes_per_s:.3g} Gb/s"
        rows.append((name, _fullest(instance, shares)))
    return rows


def _fullest(instance: SlotsInstance, shares: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Shares of the jobs that are there when these take most together."""
    at_once = [[(j, share) for j, share in shares if instance.jobs[j].is_there(each)] for each in instance.begins_s]
    return max(at_once, key=lambda own: sum(share for _, share in own))
