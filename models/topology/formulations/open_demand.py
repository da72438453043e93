r"""Rings and routes for a demand that a host model decides: groups and pairs are given, their bytes are variables.

An instance is then a *template*: it says which groups and pairs there may be, and its bytes are the most of each that
the host ever sends. Bytes are measured in a unit U that the host may name, times ``rate`` as everywhere:

.. math::
    \textstyle\sum_r \beta_{kr} = a_k, \qquad h^k_{st} = \sum_{r:\ t = \mathrm{succ}_r(s)} \beta_{kr}, \qquad
      D_{st} = b_{st} + \sum_k h^k_{st}

with the ports :math:`a_k`, hop bytes of group k (2(k-1)/k of its gradient for k members), and :math:`b_{st}`, bytes of
traffic from s to t, both tied by the host to expressions of its own.
"""

from collections.abc import Sequence
from typing import Any, Literal

import pyomo.environ as pyo

from ddlopt.models.topology.formulations.rows.throughput import Order, add_hops, add_pairs
from ddlopt.models.topology.instance import TopologyInstance

Demand = Literal["fixed", "open"]


def add_open_demand(
    block: pyo.Block,
    template: TopologyInstance,
    orders: Sequence[Sequence[Order]] | None,
    unit: float,
    most_rate: float | None,
) -> None:
    """Add ``group_units[k]``, ``traffic_units[s, t]``, ``ring_share``, ``hop`` and ``demand``, all times rate.

    Shares of rings and hops are in units of U = ``unit`` bytes, too, which the block keeps as ``unit_bytes``.
    ``most_rate`` is an upper bound on the rate; None where there is none.
    """
    groups = template.allreduce_groups
    block.unit_bytes = unit
    traffic = template.traffic_bytes / unit
    most = [None if most_rate is None else group.hop_bytes / unit * most_rate for group in groups]
    block.GROUPS = pyo.RangeSet(0, len(groups) - 1, doc="all-reduce groups")
    block.group_units = pyo.Var(block.GROUPS, bounds=lambda b, k: (0, most[k]), doc="hop bytes of a group, times rate")
    add_hops(block, template, orders, [block.group_units[k] for k in block.GROUPS], most)
    groups_of = add_pairs(block, template)
    sending = [pair for pair in block.DEMANDS if traffic[pair] > 0]
    block.TRAFFIC = pyo.Set(dimen=2, initialize=sending, doc="pairs that may have traffic")

    def limits(_: Any, s: int, t: int) -> tuple[float, float | None]:
        return 0, None if most_rate is None else float(traffic[s, t]) * most_rate

    block.traffic_units = pyo.Var(block.TRAFFIC, bounds=limits, doc="units of traffic from s to t, times rate")

    @block.Expression(block.DEMANDS, doc="units to send from s to t, times rate")
    def demand(b: Any, s: int, t: int) -> Any:
        own = [b.traffic_units[s, t]] if (s, t) in b.TRAFFIC else []
        return sum([*own, *(b.hop[k, s, t] for k in groups_of[s, t])])
