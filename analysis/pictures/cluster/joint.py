"""Pictures of schedules with plans: who has which servers over time, and what is left between plans and bounds."""

from typing import Any

from ddlopt.analysis.pictures.cluster import jobs
from ddlopt.models.cluster import JointInstance, JointPlan

_MOST_NAMES = 40
"""Of racks, which are as close as letters are high."""


def draw(axes: Any, instance: JointInstance, solution: JointPlan) -> None:
    """Draw a rectangle for each job, as high as it has servers, and below a bar for each job's gap.

    In a fabric the servers of a rack are rows one after the other, and a job is where its servers are: the partition
    of the fabric at any time. Elsewhere a job may have any servers, and is given the lowest ones that are free.
    """
    axes.axis("off")
    above, below = axes.inset_axes((0.08, 0.42, 0.9, 0.56)), axes.inset_axes((0.08, 0.08, 0.9, 0.2))
    reserved, schedule = instance.reserved(solution), solution.schedule()
    racks = rows_of_racks(instance)
    jobs.draw(above, reserved, schedule, racks, [dict(run.places) for run in solution.runs])
    if racks is not None and len(racks) <= _MOST_NAMES:
        for place, rows in racks.items():
            middle = (rows.start + rows.stop) / 2
            name = instance.fabric.groups[place].name if instance.fabric else ""
            above.annotate(
                name,
                (1.005, middle),
                xycoords=("axes fraction", "data"),
                fontsize=6,
                va="center",
                annotation_clip=False,
            )
    gaps = gaps_by_job(instance, solution)
    below.bar(range(len(gaps)), [100 * gap for gap in gaps], color="tab:gray")
    below.set_xlabel("job", fontsize=8)
    below.set_ylabel("plan's gap (%)", fontsize=8)
    below.tick_params(labelsize=7)


def rows_of_racks(instance: JointInstance) -> dict[int, range] | None:
    """Of each rack the rows of its servers, racks of a group beside each other; None without a fabric."""
    fabric = instance.fabric
    if fabric is None:
        return None
    paths = {}
    for rack in fabric.racks:
        path, above = [rack], fabric.groups[rack].inside
        while above is not None:
            path, above = [above, *path], fabric.groups[above].inside
        paths[rack] = tuple(path)
    found, first = {}, 0
    for rack in sorted(paths, key=paths.__getitem__):
        found[rack] = range(first, first + fabric.groups[rack].hosts)
        first = found[rack].stop
    return found


def gaps_by_job(instance: JointInstance, solution: JointPlan) -> list[float]:
    """Of each job: how far its plan's step is from what no plan takes less than, relative to the step."""
    told = {(plan.workload, plan.servers): 1 - plan.least_s / plan.step_s for plan in solution.plans}
    return [told[job.workload, run.servers] for job, run in zip(instance.jobs, solution.runs, strict=True)]
