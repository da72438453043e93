"""Deployments as tables: groups of operators, and every operator with its devices."""

from collections.abc import Iterator

from ddlopt.instances.writers.layout import Section, label, listed, name, section
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.solution import Deployment


def table(instance: DeploymentInstance, solution: Deployment) -> Iterator[Section]:
    """Sections of a deployment."""
    types, group_of = [each.type for each in instance.device_groups], instance.device_group_of
    devices = [(device, int(group), name(types[group])) for device, group in enumerate(group_of)]
    yield section("Devices", ("device", "device group", "type"), devices)
    groups = [
        (place, plan.mode, plan.split, listed(plan.device_groups), len(instance.members[place]))
        for place, plan in enumerate(solution.groups)
    ]
    yield section("Groups of operators", ("group", "mode", "split", "device groups", "operators"), groups)
    yield section("Operators", ("operator", "group", "devices", "how"), _operators(instance, solution))


def _operators(instance: DeploymentInstance, solution: Deployment) -> Iterator[tuple[object, ...]]:
    duplicated = set(solution.duplicated)
    at: dict[int, tuple[int, ...]] = {}
    for members, plan in zip(instance.members, solution.groups, strict=True):
        shared = instance.devices_of(plan.device_groups)
        for place, member in enumerate(members):
            at[member] = shared if plan.devices is None else (plan.devices[place],)
    for place, operator in enumerate(instance.operators):
        how = "whole batch on each" if place in duplicated else solution.groups[operator.group].mode
        yield label(place, operator.name), operator.group, listed(at[place]), how
