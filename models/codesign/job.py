"""The topology problem that a choice of strategies leaves."""

from collections.abc import Sequence

import numpy as np

from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.tables import Floats, tables_of
from ddlopt.models.topology.instance import AllReduceGroup, TopologyInstance


def job_of(instance: CodesignInstance, choices: Sequence[int]) -> TopologyInstance | None:
    """The job that the strategies make: groups, traffic and compute time; None if nothing is to be sent.

    Parameters
    ----------
    instance : CodesignInstance
    choices : sequence of int
        Index of each layer's strategy.

    Returns
    -------
    TopologyInstance or None
        Its groups are those with anything to reduce, in the order of :attr:`.Tables.groups`.
    """
    tables = tables_of(instance)
    return job_sending(instance, *tables.bytes_of(choices), tables.compute_of(choices))


def job_sending(
    instance: CodesignInstance, reduced: Floats, moved: Floats, compute_s: float
) -> TopologyInstance | None:
    """The same for (group sets,) gradient bytes in each group of a set, and (patterns,) bytes."""
    tables = tables_of(instance)
    traffic = np.zeros((instance.servers, instance.servers))
    for pattern in np.flatnonzero(moved):
        traffic += moved[pattern] * tables.patterns[pattern].unit.toarray()
    groups = tuple(
        AllReduceGroup(members=members, gradient_bytes=amount)
        for members, amount in zip(tables.groups, tables.group_bytes(reduced).tolist(), strict=True)
        if amount > 0
    )
    # A set of groups may be empty, so that what is to be reduced in it is sent by nobody.
    if not groups and not traffic.any():
        return None
    return TopologyInstance(
        name=f"{instance.name}, chosen strategies",
        **instance.fabric,
        allreduce_groups=groups,
        traffic_bytes=traffic,
        compute_s=compute_s,
        overlap=instance.overlap,
    )
