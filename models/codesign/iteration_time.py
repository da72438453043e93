"""Iteration time in a program: in which unit it is measured, and what it is made of."""

from typing import Any

import pyomo.environ as pyo

from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.tables import tables_of


def time_unit_s(instance: CodesignInstance) -> float:
    """A time of the order of an iteration, so that a program's figures are neither huge nor tiny.

    Every layer takes its own fastest strategy, with two bytes on one of the d links for every byte reduced. It is no
    bound. Where that takes no time at all, the largest activation takes its place, else the most that any strategy
    sends, else a second.
    """
    tables = tables_of(instance)
    rate = instance.degree * instance.link_bandwidth_bytes_per_s
    total, sets = 0.0, len(tables.groups_of)
    for layer, times in enumerate(tables.compute_s):
        sent = [2 * sum(amount for i, amount in own.items() if i < sets) / rate for own in tables.own[layer]]
        total += min(time + own for time, own in zip(times.tolist(), sent, strict=True))
    amounts = [amount for of_layer in tables.own for own in of_layer for amount in own.values()]
    return total or float(tables.edge_bytes.max(initial=0.0)) / rate or max(amounts, default=0.0) / rate or 1.0


def add_iteration_time(block: pyo.Block, instance: CodesignInstance, communication: Any) -> None:
    """Add ``time`` and ``objective``: compute plus ``communication``, or at least either of them."""
    block.time = pyo.Var(bounds=(0, None), doc="time of an iteration")
    if instance.overlap == "none":
        block.time_is_a_sum = pyo.Constraint(
            expr=block.compute + communication <= block.time, doc="an iteration computes, then communicates"
        )
    else:
        block.time_covers_compute = pyo.Constraint(
            expr=block.compute <= block.time, doc="an iteration is no shorter than its compute"
        )
        block.time_covers_communication = pyo.Constraint(
            expr=communication <= block.time, doc="an iteration is no shorter than its communication"
        )
    block.objective = pyo.Expression(expr=block.time)
