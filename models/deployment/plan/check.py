"""Whether a deployment speaks of the instance at all: groups, devices and operators that exist."""

from collections.abc import Iterator

from ddlopt.models.contracts import Violation
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.solution import Deployment, GroupPlan
from ddlopt.models.errors import SolutionError


def misfits(instance: DeploymentInstance, deployment: Deployment) -> list[Violation]:
    """What makes a deployment meaningless for the instance; where there is anything, it has no time."""
    if len(deployment.groups) != instance.groups:
        return [Violation("every_group_has_a_plan", "groups", len(deployment.groups), instance.groups)]
    wrong = [each for group, plan in enumerate(deployment.groups) for each in _of_group(instance, group, plan)]
    return wrong or list(_of_duplicated(instance, deployment))


def require_fit(instance: DeploymentInstance, deployment: Deployment) -> None:
    """Raise SolutionError with the first of ``misfits``, if there is one."""
    for violation in misfits(instance, deployment):
        raise SolutionError(f"the deployment does not fit instance '{instance.name}': {violation}")


def _of_group(instance: DeploymentInstance, group: int, plan: GroupPlan) -> Iterator[Violation]:
    known = len(instance.device_groups)
    unknown = [j for j in plan.device_groups if not 0 <= j < known]
    for j in unknown:
        yield Violation("device_group_exists", f"groups[{group}].device_groups", j, known)
    if unknown or plan.devices is None:
        return
    members = len(instance.members[group])
    if len(plan.devices) != members:
        yield Violation("every_operator_has_a_device", f"groups[{group}].devices", len(plan.devices), members)
    for device in plan.devices:
        if not 0 <= device < instance.devices:
            yield Violation("device_exists", f"groups[{group}].devices", device, instance.devices)
        elif instance.device_group_of[device] not in plan.device_groups:
            at = int(instance.device_group_of[device])
            yield Violation(
                "device_is_in_its_device_groups",
                f"groups[{group}].devices, device {device}",
                at,
                max(plan.device_groups),
            )


def _of_duplicated(instance: DeploymentInstance, deployment: Deployment) -> Iterator[Violation]:
    count = len(instance.operators)
    for place in deployment.duplicated:
        if not 0 <= place < count:
            yield Violation("operator_exists", "duplicated", place, count)
            continue
        where = f"operator {place} '{instance.operators[place].name}'"
        plan = deployment.groups[instance.operators[place].group]
        replicas = len(instance.devices_of(plan.device_groups)) if plan.mode == "all_reduce" else 1
        if replicas < 2:
            yield Violation("duplicated_operator_has_replicas_that_all_reduce", where, replicas, 2)
