"""Lower bounds on the iteration time of every plan, without a solver."""

import numpy as np

from ddlopt.models.codesign.demand import demand_of
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.tables import Floats, Tables, tables_of
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import BOUND_MARGIN, ROUNDING


def lower_bound(instance: CodesignInstance) -> float:
    r"""Iteration time in seconds that no plan can beat: layer by layer, everything averaged over the servers.

    A strategy of a layer keeps servers busy for :math:`b` seconds on average, and its bytes times the hops that they
    need at least (``hop_bytes`` of the demand) keep all links busy for :math:`h` seconds on
    average. Neither the busiest server nor the busiest link has less than the average, and what moves between layers is
    left out, so that with p the longest path through the layers, each at its shortest time, no plan takes less than

    .. math::
        \max \Bigl\{ \sum_l \min_a (b_{la} + h_{la}),\ p + \sum_l \min_a h_{la} \Bigr\}
        \quad\text{or}\quad
        \max \Bigl\{ \sum_l \min_a b_{la},\ \sum_l \min_a h_{la},\ p \Bigr\}

    without and with overlap.

    Raises
    ------
    InfeasibleError
        If some layer fits into the memory of no server whichever its strategy, or all of them do not fit together: the
        leanest strategies of all take more than all servers have, and every plan takes no less.
    """
    refuse_too_large(instance)
    tables = tables_of(instance)
    sent = _sent_s(tables)
    busy = [
        times * np.array([len(servers) for servers in where]) / instance.servers
        for times, where in zip(tables.compute_s, tables.runs_on, strict=True)
    ]
    path = tables.least_path_s
    if instance.overlap == "full":
        found = max(_least(busy), _least(sent), path)
    else:
        found = max(_least([a + b for a, b in zip(busy, sent, strict=True)]), path + _least(sent))
    return found * (1 - BOUND_MARGIN)


def _least(seconds: list[Floats]) -> float:
    return sum(float(each.min()) for each in seconds)


def _sent_s(tables: Tables) -> list[Floats]:
    """By layer and strategy: bytes times hops of what it reduces and sends by itself, in seconds of all links."""
    demand = demand_of(tables)
    hop_s = demand.hop_bytes / (demand.capacity * tables.instance.link_bandwidth_bytes_per_s)
    return [
        np.array([sum(amount * float(hop_s[i]) for i, amount in own.items()) for own in of_layer])
        for of_layer in tables.own
    ]


def least_memory_bytes(instance: CodesignInstance) -> float:
    """Memory of all servers together that the leanest strategy of every layer takes."""
    return sum(
        min(strategy.memory_bytes * len(instance.layouts[strategy.writes].servers) for strategy in layer.strategies)
        for layer in instance.layers
    )


def fits(instance: CodesignInstance) -> bool:
    """Whether :func:`refuse_too_large` lets it pass."""
    try:
        refuse_too_large(instance)
    except InfeasibleError:
        return False
    return True


def refuse_too_large(instance: CodesignInstance) -> None:
    """Raise InfeasibleError if the memory of the servers cannot hold a layer, or all of them together."""
    limit = instance.device.memory_bytes
    if limit is None:
        return
    remedies = f"; with {'; with '.join(instance.remedies)}" if instance.remedies else ""
    for layer in instance.layers:
        leanest = min(layer.strategies, key=lambda strategy: strategy.memory_bytes)
        if leanest.memory_bytes > instance.most_memory_bytes:
            raise InfeasibleError(
                f"codesign instance '{instance.name}': no strategy of layer '{layer.name}' fits in memory: the "
                f"leanest, '{leanest.name}', takes {leanest.memory_bytes:.6g} bytes on a server that has {limit:.6g}; "
                f"{leanest.memory_bytes - limit:.6g} bytes are missing{remedies}"
            )
    total, have = least_memory_bytes(instance), limit * instance.servers
    if total > instance.most_memory_bytes * instance.servers * (1 + ROUNDING):
        raise InfeasibleError(
            f"codesign instance '{instance.name}': the layers do not fit in memory together: the leanest strategy of "
            f"each takes {total:.6g} bytes in all on {instance.servers} servers that have {have:.6g}; "
            f"{total - have:.6g} bytes are missing{remedies}"
        )
