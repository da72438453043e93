"""Pictures of schedules with plans: servers over time, and by plan what is left between its time and the bound."""

from typing import Any

from ddlopt.analysis.pictures.cluster import jobs
from ddlopt.models.cluster import JointInstance, JointPlan


def draw(axes: Any, instance: JointInstance, solution: JointPlan) -> None:
    """Draw a rectangle for each job, as high as it has servers, and below a bar for each job's gap."""
    axes.axis("off")
    above, below = axes.inset_axes((0.08, 0.42, 0.9, 0.56)), axes.inset_axes((0.08, 0.08, 0.9, 0.2))
    steps = solution.steps()
    jobs.draw(above, instance.at(lambda workload, choice: steps.get((workload, choice.servers))), solution.schedule())
    gaps = gaps_by_job(instance, solution)
    below.bar(range(len(gaps)), [100 * gap for gap in gaps], color="tab:gray")
    below.set_xlabel("job", fontsize=8)
    below.set_ylabel("plan's gap (%)", fontsize=8)
    below.tick_params(labelsize=7)


def gaps_by_job(instance: JointInstance, solution: JointPlan) -> list[float]:
    """Of each job: how far its plan's step is from what no plan takes less than, relative to the step."""
    told = {(plan.workload, plan.servers): 1 - plan.least_s / plan.step_s for plan in solution.plans}
    return [told[job.workload, run.servers] for job, run in zip(instance.jobs, solution.runs, strict=True)]
