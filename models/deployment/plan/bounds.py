"""A bound for the problem ``plan`` that needs no solver."""

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.least_times import least_figures, least_synchronisation_s, whole_times
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import let_pass_at_most

# Steps shrink with their number, and each of them is a bound.
_ROUNDS = 300


def plan_bound(instance: DeploymentInstance) -> float:
    r"""The larger of a critical path and of all work shared by all devices; for every plan.

    *Path.* Let :math:`d_o` be the least time that operator o takes for a part of the batch on any device, and
    :math:`E_o = d_o + \max_p E_p` over those that it reads from. No replica of o ends before :math:`E_o`: it needs some
    part of the batch, so it waits for a replica of each p, directly or through a transfer. An operator with a gradient
    is either computed for the whole batch somewhere (on one device, or duplicated), or its gradient is reduced over
    several devices, which takes :math:`r_o` at least after a replica has ended. So a step takes at least
    :math:`\max_p E_p + \min(w_o, d_o + r_o)`, where :math:`w_o` is the time of the whole batch on the best device.

    *Work.* The replicas of o have at least the whole batch between them. A part s of it on device group j takes at
    least :math:`c_{oj}\, s`, with the least time per part :math:`c_{oj}`. If no device works for more than T, the
    :math:`n_j` devices of group j not for more than :math:`n_j T` together, so for any prices :math:`\lambda \ge 0`
    with :math:`\sum_j n_j \lambda_j = 1`

    .. math:: T \ge \sum_j \lambda_j \sum_o c_{oj} s_{oj} \ge \sum_o \min_j \lambda_j c_{oj} .

    Prices are improved for a while by multiplicative weights.

    Raises
    ------
    InfeasibleError
        If operators keep more bytes than all devices have: each is on one device at least.
    """
    resident = sum(operator.resident_bytes for operator in instance.operators)
    memory = sum(group.count * group.memory_bytes for group in instance.device_groups)
    if resident > let_pass_at_most(memory):
        raise InfeasibleError(
            f"'{instance.name}': the operators keep {resident:.6g} bytes, but all devices have {memory:.6g} together"
        )
    least, per_batch = least_figures(instance)
    return max(_path(instance, least.min(axis=1)), _shared_work(instance, per_batch))


def _path(instance: DeploymentInstance, least: npt.NDArray[np.float64]) -> float:
    whole = whole_times(instance).min(axis=1)
    ends, latest = np.zeros(len(instance.operators)), 0.0
    for place in instance.order:
        start = max((ends[instance.tensors[tensor].producer] for tensor in instance.inputs[place]), default=0.0)
        ends[place] = start + least[place]
        size = instance.operators[place].gradient_bytes
        reduced = min(whole[place], least[place] + least_synchronisation_s(instance, size)) if size else 0.0
        latest = max(latest, ends[place], start + reduced)
    return float(latest)


def _shared_work(instance: DeploymentInstance, per_batch: npt.NDArray[np.float64]) -> float:
    counts = np.array([group.count for group in instance.device_groups], float)
    prices, best = np.full(len(counts), 1 / counts.sum()), 0.0
    for turn in range(1, _ROUNDS + 1):
        costs = prices * per_batch
        chosen = costs.argmin(axis=1)
        best = max(best, float(costs.min(axis=1).sum()))
        loads = np.bincount(chosen, per_batch[np.arange(len(chosen)), chosen], len(counts)) / counts
        if not loads.any():
            break
        prices = prices * np.exp(loads / loads.max() / turn**0.5)
        prices /= (counts * prices).sum()
    return best
