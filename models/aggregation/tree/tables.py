"""Figures of a tree that bounds, formulations and methods share."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ddlopt.models.aggregation.tree.instance import TreeInstance

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TreeTables:
    """Arrays by switch, and by job and switch.

    Parameters
    ----------
    order : int64, shape (n,)
        Each switch after its parent.
    parents : int64, shape (n,)
        -1 for the root.
    path_s : float64, shape (n,)
        Seconds that a message of size 1 takes from each switch to the destination, links one after the other.
    below : int64, shape (jobs, n)
        Messages that enter at a switch or below it.
    useful : bool, shape (jobs, n)
        Whether the switch has memory for the job, and may save messages: there are at least two below.
    """

    order: Ints
    parents: Ints
    path_s: Floats
    below: Ints
    useful: npt.NDArray[np.bool_]


def tables(instance: TreeInstance) -> TreeTables:
    """The tables of an instance."""
    order = np.array(instance.order, dtype=np.int64)
    parents = np.array([-1 if above is None else above for above in instance.parents], dtype=np.int64)
    path_s = np.array(instance.seconds_per_message, dtype=np.float64)
    below = np.array([job.loads for job in instance.jobs], dtype=np.int64)
    for node in order[1:]:
        path_s[node] += path_s[parents[node]]
    for node in order[:0:-1]:
        below[:, parents[node]] += below[:, node]
    room = np.full(instance.size, np.iinfo(np.int64).max) if instance.memory is None else np.array(instance.memory)
    needs = np.array([job.memory for job in instance.jobs])
    return TreeTables(order, parents, path_s, below, (room[None, :] >= needs[:, None]) & (below >= 2))


def budgets(instance: TreeInstance, useful: npt.NDArray[np.bool_]) -> tuple[int, list[int]]:
    """Most pairs in total, and most switches of each job, neither above what is useful."""
    each = [
        int(count) if job.budget is None else min(job.budget, int(count))
        for job, count in zip(instance.jobs, useful.sum(axis=1), strict=True)
    ]
    return (sum(each) if instance.budget is None else min(instance.budget, sum(each))), each


def coupled(instance: TreeInstance, useful: npt.NDArray[np.bool_]) -> list[int]:
    """Switches that have memory for every useful job by itself, but not for all of them together."""
    if instance.memory is None:
        return []
    needs = np.array([job.memory for job in instance.jobs])
    return np.flatnonzero(needs @ useful > np.array(instance.memory)).tolist()
