"""Strategies times throughput: the products that a topology in throughput form needs, and the inverse of it.

The mathematics is in :class:`~ddlopt.models.codesign.formulations.joint_milp.JointStrategyTopology`. Strategies must be
binary here, no counts of twins.
"""

from math import ceil, log, sqrt
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.repn import generate_standard_repn

from ddlopt.models.codesign.demand import demand_of
from ddlopt.models.codesign.formulations.rows.strategy_choice import linear
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.tables import tables_of


def add_rates(block: pyo.Block, rate: Any, unit: float) -> None:
    """Add ``reduced_rate[q]`` and ``moved_rate[p]``: bytes times ``rate``, by products with strategies and pairs.

    The equations that bind strategies and pairs are repeated with every variable times rate. The rate is that of a
    congestion in ``unit`` of the block's units, in which bytes are counted here.
    """
    low, high = rate.lb, rate.ub
    block.strategy_rate = pyo.Var(block.CHOICES, bounds=(0, high), doc="rate if the layer takes the strategy, else 0")
    block.transition_rate = pyo.Var(
        block.TRANSITIONS, bounds=(0, high), doc="rate if the edge's ends take such strategies, else 0"
    )
    rates = {id(block.strategy[key]): block.strategy_rate[key] for key in block.CHOICES}
    rates |= {id(block.transition[key]): block.transition_rate[key] for key in block.TRANSITIONS}

    def times_rate(expression: Any, unit: float = 1.0) -> list[tuple[float, Any]]:
        found = generate_standard_repn(expression, compute_values=True)
        terms = [(c / unit, rates[id(x)]) for c, x in zip(found.linear_coefs, found.linear_vars, strict=True)]
        return [*terms, (found.constant / unit, rate)]

    for name in ("layer_has_a_strategy", "source_agrees", "target_agrees"):
        bound = block.component(name)

        def equation(b: Any, *key: int, rows: Any = bound) -> Any:
            return linear([*times_rate(rows[key].body), (-pyo.value(rows[key].upper), rate)]) == 0

        repeated = pyo.Constraint(bound.index_set(), rule=equation, doc=f"{bound.doc}, times rate")
        block.add_component(f"{name}_times_rate", repeated)

    @block.Constraint(block.CHOICES, doc="no rate without the strategy")
    def strategy_rate_at_most(b: Any, layer: int, a: int) -> Any:
        return linear([(1.0, b.strategy_rate[layer, a]), (-high, b.strategy[layer, a])]) <= 0

    @block.Constraint(block.CHOICES, doc="with the strategy at least the least rate")
    def strategy_rate_at_least(b: Any, layer: int, a: int) -> Any:
        return linear([(1.0, b.strategy_rate[layer, a]), (-low, b.strategy[layer, a])]) >= 0

    @block.Constraint(block.TRANSITIONS, doc="no rate without the pair")
    def transition_rate_at_most(b: Any, *key: int) -> Any:
        return linear([(1.0, b.transition_rate[key]), (-high, b.transition[key])]) <= 0

    @block.Constraint(block.TRANSITIONS, doc="with the pair at least the least rate")
    def transition_rate_at_least(b: Any, *key: int) -> Any:
        return linear([(1.0, b.transition_rate[key]), (-low, b.transition[key])]) >= 0

    block.reduced_rate = pyo.Var(block.SETS, bounds=(0, None), doc="gradient bytes of each group of a set, times rate")
    block.moved_rate = pyo.Var(block.PATTERNS, bounds=(0, None), doc="bytes of a pattern, times rate")

    @block.Constraint(block.SETS, doc="gradient bytes follow from the rates of strategies")
    def reduced_rates_follow(b: Any, q: int) -> Any:
        return linear([*times_rate(b.reduced[q], unit), (-1.0, b.reduced_rate[q])]) == 0

    @block.Constraint(block.PATTERNS, doc="bytes of patterns follow from the rates of strategies")
    def moved_rates_follow(b: Any, p: int) -> Any:
        return linear([*times_rate(b.moved[p], unit), (-1.0, b.moved_rate[p])]) == 0


def add_inverse(block: pyo.Block, rate: Any, gap: float, from_zero: bool, unit: float) -> None:
    """``congestion`` is at least tangents of ``unit`` / ``rate`` that are short of it by the part ``gap`` at most.

    Unless ``from_zero``, the rate's upper bound may stand for a congestion of nothing; then all are lowered by as much.
    """
    low, high = rate.lb, rate.ub
    # Tangents at x and r x meet where both are short of the curve by the part ((r - 1) / (r + 1))².
    root = sqrt(gap)
    pieces = max(1, ceil(log(high / low) / log((1 + root) / (1 - root))))
    points = np.geomspace(low, high, pieces + 1).tolist()
    shift = 0.0 if from_zero else 1 / high
    block.inverse = pyo.Var(bounds=(0, None), doc="congestion, where the rate is its inverse")
    block.congestion_follows = pyo.Constraint(
        expr=unit * block.inverse <= block.congestion, doc="congestion covers that of the network"
    )
    block.TANGENTS = pyo.RangeSet(0, len(points) - 1, doc="points at which the inverse of the rate has a tangent")

    @block.Constraint(block.TANGENTS, doc="congestion is at least the inverse of the rate")
    def congestion_is_inverse(b: Any, i: int) -> Any:
        x = points[i]
        return linear([(x, b.inverse), (1 / x, rate)]) >= 2.0 - shift * x


def add_volume_rate(block: pyo.Block, instance: CodesignInstance) -> None:
    """The volume of all links, which carry one unit at most where everything is scaled by the rate."""
    demand = demand_of(tables_of(instance))
    amounts = [*block.reduced_rate.values(), *block.moved_rate.values()]
    parts = (demand.hop_bytes / demand.capacity).tolist()
    block.volume_rate_is_carried = pyo.Constraint(
        expr=linear(zip(parts, amounts, strict=True)) <= 1, doc="all links together carry all volume at the rate"
    )
