"""The combinatorial bound of a sufficient-factor selection in rational numbers: a maximum flow in whole ones."""

from fractions import Fraction
from math import lcm

from ddlopt.certificates.compression.sfb.exact_flow import maximum_flow
from ddlopt.models.compression.sfb.instance import SfbInstance

_MOST_BITS = 2_000
"""Of the common denominator; beyond it capacities are rounded down to multiples of 2⁻³⁰⁰ of all all-reduces."""


def exact_sfb_bound(instance: SfbInstance) -> Fraction:
    """Value of a maximum flow, from the operators' own data: the optimum itself where there is no budget."""
    extra = [_extra(instance, node) + Fraction(instance.duplication_penalty_s) for node in range(instance.size)]
    sync = [_allreduce(instance, node) for node in range(instance.size)]
    sent = [_broadcast(instance, place) for place in range(len(instance.tensors))]
    unit = lcm(*(value.denominator for value in (*extra, *sync, *sent)))
    if unit.bit_length() > _MOST_BITS:
        unit = 2 ** max(0, 300 - int(sum(sync, Fraction(1))).bit_length())
    flow = maximum_flow(*_network(instance, *([int(value * unit) for value in each] for each in (extra, sync, sent))))
    return Fraction(flow, unit)


def _network(
    instance: SfbInstance, extra: list[int], sync: list[int], sent: list[int]
) -> tuple[int, list[tuple[int, int, int]], int, int]:
    """On the source's side of a cut are the duplicated operators, and tensors that a duplicated one reads."""
    n = instance.size
    source, sink = n + len(sent), n + len(sent) + 1
    endless = sum(sync) + 1
    arcs = []
    for node, operator in enumerate(instance.operators):
        may = operator.can_duplicate and operator.replicas > 1
        arcs += [(source, node, sync[node]), (node, sink, min(extra[node], endless) if may else endless)]
    for place, tensor in enumerate(instance.tensors):
        cost = min(sent[place], endless)
        if instance.broadcast == "per_edge":
            arcs += [(consumer, tensor.producer, cost) for consumer in tensor.consumers]
        else:
            arcs += [(consumer, n + place, endless) for consumer in tensor.consumers]
            arcs.append((n + place, tensor.producer, cost))
    return sink + 1, arcs, source, sink


def _extra(instance: SfbInstance, node: int) -> Fraction:
    operator = instance.operators[node]
    per_replica = Fraction(operator.time_s) * (operator.replicas - 1)
    return per_replica / operator.replicas if instance.cost_model == "per_link" else per_replica


def _allreduce(instance: SfbInstance, node: int) -> Fraction:
    operator = instance.operators[node]
    all_links = 2 * (operator.replicas - 1) * Fraction(operator.gradient_bytes)
    all_links /= Fraction(operator.bandwidth_bytes_per_s)
    scale = {"per_link": operator.replicas, "total_bytes": 1, "tag_code": 4 * operator.replicas}
    return all_links / scale[instance.cost_model]


def _broadcast(instance: SfbInstance, place: int) -> Fraction:
    tensor = instance.tensors[place]
    producer = instance.operators[tensor.producer]
    by_all = Fraction(tensor.size_bytes) * (producer.replicas - 1) / Fraction(producer.bandwidth_bytes_per_s)
    scale = {"per_link": Fraction(1, producer.replicas), "total_bytes": Fraction(1)}
    return by_all * scale.get(instance.cost_model, Fraction(producer.replicas, 4))
