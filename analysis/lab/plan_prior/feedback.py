"""What a simulated step shows besides its time: when groups run, how long what they make waits, what is busy."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np

from ddlopt.models.kernels import kernel, record
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator
from ddlopt.solvers.deployment.plan.simulator.run import seconds
from ddlopt.solvers.deployment.plan.simulator.tables import Floats, Ints
from ddlopt.solvers.deployment.plan.simulator.work import COLUMNS, HOW, NONE, TASKS, Work

_WORK = record(Work, *COLUMNS)


class Feedback(NamedTuple):
    """Of one step.

    Parameters
    ----------
    time_s : float
    excess_bytes : float
        As in :class:`~ddlopt.solvers.deployment.plan.simulator.fast.Outcome`.
    span_s : (groups,) array
        From the first start of a replica to the last end, the mean over the group's operators.
    idle_after_s : (groups,) array
        The least time between the end of a replica and the start of a task that waited for it, 0 where none does; the
        mean over the group's operators.
    busy_s : (devices,) array
        Of each device, computing.
    link_s : (m, m) array
        Of the link from one device group to another; on the diagonal of the busiest link within.
    channel_s : float
        Of the collective channel.
    peak_bytes : (devices,) array
    """

    time_s: float
    excess_bytes: float
    span_s: Floats
    idle_after_s: Floats
    busy_s: Floats
    link_s: Floats
    channel_s: float
    peak_bytes: Floats


class Observer:
    """Runs plans of an instance once more, and tells what there was to see; see :class:`Feedback`."""

    def __init__(self, simulator: Simulator) -> None:
        instance = simulator.instance
        self._simulator, self._at = simulator, instance.device_group_of
        self._group = np.array([operator.group for operator in instance.operators])
        self._members = np.bincount(self._group, minlength=instance.groups)

    def see(self, row: Ints) -> Feedback:
        """One step under (groups,) actions."""
        outcome = self._simulator.run(row)
        work, scale_s = self._simulator.work, self._simulator.scale_s
        operators, devices, groups = len(self._group), len(self._at), len(self._simulator.instance.device_groups)
        start, end, idle = (np.empty(operators) for _ in range(3))
        busy = np.zeros(len(work.queue))
        look(work, scale_s, start, end, idle, busy)
        own = busy[devices : devices + devices**2].reshape(devices, devices)
        links = busy[devices + devices**2 : -1].reshape(groups, groups).copy()
        for j in range(groups):
            within = np.ix_(self._at == j, self._at == j)
            links[j, j] = own[within].max()
        return Feedback(
            outcome.time_s,
            outcome.excess_bytes,
            np.bincount(self._group, end - start) / self._members,
            # Differences of rounded times may be below 0.
            np.bincount(self._group, np.maximum(idle, 0.0)) / self._members,
            busy[:devices],
            links,
            float(busy[-1]),
            outcome.peak_bytes,
        )


@kernel("(_WORK, f8, f8[::1], f8[::1], f8[::1], f8[::1])", **HOW)
def look(work: Work, scale_s: float, start: Floats, end: Floats, idle: Floats, busy: Floats) -> None:
    """Of a step that has run: first start, last end and least wait after of each operator; seconds of each resource."""
    node, edge = work.node, work.edge
    for place in range(len(start)):
        start[place], end[place], idle[place] = np.inf, 0.0, np.inf
    for task in range(work.used[TASKS]):
        if node[task].resource == NONE:
            continue
        took = seconds(scale_s, node[task].length_high, node[task].length_low)
        busy[node[task].resource] += took
        if node[task].operator == NONE:
            continue
        place, finish = node[task].operator, seconds(scale_s, node[task].finish_high, node[task].finish_low)
        start[place] = min(start[place], finish - took)
        end[place] = max(end[place], finish)
        i = node[task].head
        while i != NONE:
            later = edge[i].to
            i = edge[i].next
            # What gathers others takes no time, and has none: it is left out.
            if node[later].resource != NONE:
                ended = seconds(scale_s, node[later].finish_high, node[later].finish_low)
                begun = ended - seconds(scale_s, node[later].length_high, node[later].length_low)
                idle[place] = min(idle[place], begun - finish)
    for place in range(len(start)):
        if idle[place] == np.inf:
            idle[place] = 0.0
