"""The independent check of a deployment."""

from collections.abc import Iterator

from ddlopt.models.contracts import Evaluation, Number, Violation
from ddlopt.models.deployment.plan.check import misfits
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.simulator.simulate import Timeline, simulate
from ddlopt.models.deployment.plan.solution import Deployment
from ddlopt.models.tolerances import let_pass


def evaluate_plan(instance: DeploymentInstance, solution: Deployment, exact: bool = False) -> Evaluation:
    """Time of a step, and devices whose memory does not suffice.

    Returns
    -------
    Evaluation
        Details: ``compute_s``, the work of the busiest device; ``transfer_s``, of the busiest link; ``collective_s``;
        ``memory_use``, the largest part of a device's memory that is needed; ``tasks``, how many there are.
    """
    wrong = misfits(instance, solution)
    if wrong:
        return Evaluation(None, tuple(wrong))
    timeline = simulate(instance, solution, exact)
    return Evaluation(timeline.time_s, tuple(_too_little_memory(instance, timeline)), _details(instance, timeline))


def _too_little_memory(instance: DeploymentInstance, timeline: Timeline) -> Iterator[Violation]:
    for device, peak in enumerate(timeline.peak_bytes):
        group = instance.device_groups[instance.device_group_of[device]]
        if peak > let_pass(type(peak)(group.memory_bytes)):
            yield Violation("memory", f"device {device} ({group.type})", peak, group.memory_bytes)


def _details(instance: DeploymentInstance, timeline: Timeline) -> dict[str, Number]:
    most: dict[str, Number] = {"device": 0.0, "link": 0.0, "collective": 0.0}
    for resource, busy in timeline.busy_s.items():
        kind = "link" if resource.kind == "group link" else resource.kind
        most[kind] = max(most[kind], busy)
    memory = [instance.device_groups[group].memory_bytes for group in instance.device_group_of]
    return {
        "compute_s": most["device"],
        "transfer_s": most["link"],
        "collective_s": most["collective"],
        "memory_use": max(float(peak) / size for peak, size in zip(timeline.peak_bytes, memory, strict=True)),
        "tasks": len(timeline.tasks),
    }
