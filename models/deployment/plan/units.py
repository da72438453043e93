"""The unit in which models of plans measure times."""

import numpy as np

from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.least_times import whole_times
from ddlopt.models.units import between, unit_of


def plan_unit_s(instance: DeploymentInstance) -> float:
    """Seconds of a unit, of which a step takes about a thousand.

    Between the work of all operators where each is quickest, shared by all devices, and that of all on one device whose
    memory keeps them, which is a plan. Where both are 0, by what everything takes wherever it is slow, or to be sent.
    """
    whole = whole_times(instance)
    alone = whole.sum(axis=0)
    resident = sum(operator.resident_bytes for operator in instance.operators)
    fits = np.array([group.memory_bytes >= resident for group in instance.device_groups])
    low = float(whole.min(axis=1).sum()) / instance.devices
    moved = sum(each.size_bytes for each in instance.tensors) + sum(o.gradient_bytes for o in instance.operators)
    rate = max(group.bandwidth_bytes_per_s for group in instance.device_groups)
    return unit_of(
        between(low, float(alone[fits].min(initial=np.inf))), float(alone.max()), moved / rate, instance.latency_s
    )
