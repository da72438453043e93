"""The format ``topology``: what a plan sends between servers, as a job for which optical links are laid."""

from typing import Literal

from ddlopt.instances.options import at_least, checked, positive
from ddlopt.instances.workloads.step_traffic import traffic
from ddlopt.instances.workloads.training import GIGABIT_PER_S
from ddlopt.models.contracts import Evaluation
from ddlopt.models.deployment.step.instance import StepInstance, StepPlan


@checked
def topology(
    instance: StepInstance,
    solution: StepPlan,
    evaluation: Evaluation,
    tier: str = "",
    degree: int | None = None,
    gigabit_per_s: float | None = None,
    optics: Literal["one_way", "duplex"] = "one_way",
    overlap: Literal["none", "full"] = "none",
) -> str:
    """An instance of topology, as JSON; options as in :func:`~ddlopt.instances.workloads.step_traffic.traffic`.

    Raises
    ------
    OptionError
        If an option is out of range, or nothing is sent between servers.
    """
    if degree is not None:
        at_least("degree", degree, 1)
    if gigabit_per_s is not None:
        positive("gigabit_per_s", gigabit_per_s)
        gigabit_per_s *= GIGABIT_PER_S
    job = traffic(
        instance,
        solution,
        tier=tier,
        degree=degree,
        bandwidth_bytes_per_s=gigabit_per_s,
        optics=optics,
        overlap=overlap,
    )
    return job.to_json() + "\n"
