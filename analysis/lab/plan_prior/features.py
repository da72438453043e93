"""What a learned prior sees of an instance: groups as nodes of a graph, and what each action would mean for each."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment import DeploymentInstance
from ddlopt.models.deployment.plan.simulator.tasks import all_reduce_s
from ddlopt.solvers.deployment.plan.actions import Action, forward_order

Floats = npt.NDArray[np.float64]

_LEAST_S = 1e-12
"""Divisor in place of a time of 0: far below any operator's, so that the logarithms of ratios stay finite."""
# Columns of ``nodes`` below; another number needs other weights.
NODE_FEATURES = 9
# Columns of ``actions`` below; another number needs other weights.
ACTION_FEATURES = 15


class Features(NamedTuple):
    """Of one instance, free of units.

    Parameters
    ----------
    nodes : (groups, NODE_FEATURES) array
    edges : (groups, groups) array
        Symmetric, each row of sum 1 or 0: how much of what a group sends and receives goes to each other one.
    actions : (groups, actions, ACTION_FEATURES) array
    """

    nodes: Floats
    edges: Floats
    actions: Floats


class Figures:
    """Seconds and bytes of groups."""

    def __init__(self, instance: DeploymentInstance) -> None:
        groups, types = instance.groups, [group.type for group in instance.device_groups]
        self.counts = np.array([group.count for group in instance.device_groups], dtype=float)
        self.time_s = np.zeros((groups, len(types), len(instance.shares)))
        self.gradient = np.zeros(groups)
        self.resident = np.zeros(groups)
        for operator in instance.operators:
            self.time_s[operator.group] += [operator.times_s[kind] for kind in types]
            self.gradient[operator.group] += operator.gradient_bytes
            self.resident[operator.group] += operator.resident_bytes
        self.passed = np.zeros((groups, groups))
        for tensor in instance.tensors:
            source = instance.operators[tensor.producer].group
            for target in {instance.operators[node].group for node in tensor.consumers} - {source}:
                self.passed[source, target] += tensor.size_bytes
        self.speed = 1 / np.maximum(self.time_s[:, :, 0].sum(axis=0), _LEAST_S)
        self.unit_s = 1 / float((self.counts * self.speed).sum())
        between = instance.bandwidth_bytes_per_s[~np.eye(len(types), dtype=bool)]
        within = np.array([group.bandwidth_bytes_per_s for group in instance.device_groups])
        self.bandwidth = float(between.mean()) if len(between) else float(within.mean())
        self.within = within / self.bandwidth

    def seconds(self, size_bytes: Floats) -> Floats:
        """Logarithm of the time that bytes take between device groups, in units of an ideal step."""
        return np.log1p(1e3 * size_bytes / self.bandwidth / self.unit_s)


def features(instance: DeploymentInstance, actions: tuple[Action, ...]) -> Features:
    """What the network is given."""
    figures = Figures(instance)
    both = figures.passed + figures.passed.T
    totals = both.sum(axis=1, keepdims=True)
    edges = np.divide(both, totals, out=np.zeros_like(both), where=totals > 0)
    return Features(_nodes(instance, figures), edges, _actions(instance, figures, actions))


def _nodes(instance: DeploymentInstance, figures: Figures) -> Floats:
    whole, smallest = figures.time_s[:, :, 0], figures.time_s[:, :, -1]
    place = np.empty(instance.groups)
    place[forward_order(instance)] = np.linspace(0, 1, instance.groups)
    mean = whole.mean(axis=1)
    return np.column_stack(
        [
            np.log1p(1e3 * mean / figures.unit_s / len(figures.speed)),
            mean / max(mean.sum(), _LEAST_S),
            np.log(np.maximum(whole.max(axis=1), _LEAST_S) / np.maximum(whole.min(axis=1), _LEAST_S)),
            smallest.mean(axis=1) / np.maximum(mean, _LEAST_S),
            figures.seconds(figures.gradient),
            figures.seconds(figures.resident),
            figures.seconds(figures.passed.sum(axis=1)),
            figures.seconds(figures.passed.sum(axis=0)),
            place,
        ]
    )


def _actions(instance: DeploymentInstance, figures: Figures, actions: tuple[Action, ...]) -> Floats:
    made = np.zeros((instance.groups, len(actions), ACTION_FEATURES))
    for number, action in enumerate(actions):
        chosen = list(action.device_groups)
        counts, speed = figures.counts[chosen], figures.speed[chosen]
        devices = counts.sum()
        made[:, number, 0] = devices / figures.counts.sum()
        made[:, number, 1] = (counts * speed).sum() * figures.unit_s
        made[:, number, 2] = speed.min() / figures.speed.max()
        made[:, number, 3] = speed.max() / figures.speed.max()
        made[:, number, 4] = float(len(chosen) == 1)
        made[:, number, 5] = np.log(figures.within[chosen].mean())
        made[:, number, 6:9] = [action.mode == kind for kind in ("all_reduce", "parameter_server", "model_parallel")]
        made[:, number, 9] = float(action.split == "speed")
        made[:, number, 10] = float(devices == 1)
        made[:, number, 11] = np.log1p(1e3 * _compute_s(figures, chosen, action) / figures.unit_s)
        made[:, number, 12] = np.log1p(1e3 * _reduce_s(instance, figures, action, devices) / figures.unit_s)
        memory = min(instance.device_groups[j].memory_bytes for j in chosen)
        made[:, number, 13] = figures.resident / memory
        made[:, number, 14] = 1.0
    return made


def _compute_s(figures: Figures, chosen: list[int], action: Action) -> Floats:
    """(groups,) about what the slowest device computes."""
    whole, counts = figures.time_s[:, chosen, 0], figures.counts[chosen]
    if action.mode == "model_parallel" or action.split == "speed":
        shared: Floats = 1 / (counts / np.maximum(whole, _LEAST_S)).sum(axis=1)
        return shared
    slowest: Floats = whole.max(axis=1) / counts.sum()
    return slowest


def _reduce_s(instance: DeploymentInstance, figures: Figures, action: Action, devices: float) -> Floats:
    """(groups,) about what synchronisation takes."""
    if action.mode == "model_parallel" or devices == 1:
        return np.zeros(instance.groups)
    if action.mode == "parameter_server":
        rate = figures.bandwidth if len(action.device_groups) > 1 else figures.bandwidth * figures.within.mean()
        sent: Floats = 2 * (devices - 1) * figures.gradient / rate
        return sent
    reduced = [float(all_reduce_s(instance, action.device_groups, size, float)) for size in figures.gradient]
    return np.where(figures.gradient > 0, reduced, 0.0)
