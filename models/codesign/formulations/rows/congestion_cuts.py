"""What is known about the congestion of single choices of strategies, lifted to all choices that send no less."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyomo.environ as pyo

from ddlopt.models.codesign.formulations.rows.strategy_choice import linear
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.tables import Floats, Tables, tables_of

CongestionCut = tuple[tuple[int, ...], float]
"""Index of each layer's strategy, and bytes that the busiest link then carries at least, in every topology."""

_MARGIN = 1e-5
"""Bytes a little below those of the cut count as no less, and the cut says as much less, so that rounding is on the
safe side."""


def add_cuts(
    block: pyo.Block,
    instance: CodesignInstance,
    cuts: Sequence[CongestionCut],
    unit: float,
    weights: Floats,
) -> None:
    r"""Constrain ``congestion``, beside what ``add_strategies`` has made, by cuts.

    ``unit`` is the unit of ``congestion`` in bytes, and ``share[i]`` the i-th figure in that unit times ``weights[i]``.

    Let m be the figures of a choice, gradient bytes by group set and bytes by pattern, and z(m) the congestion of the
    best topology for them.

    * z is *monotone*: a topology, rings and routes for m also serve any :math:`m' \le m`, with no more on any link.
    * z is *homogeneous*: :math:`z(\lambda m) = \lambda z(m)`.

    So a bound :math:`z(\hat m) \ge \hat z` proves :math:`z(m) \ge (1 - \epsilon) \hat z` for *every* choice with
    :math:`m \ge (1 - \epsilon) \hat m`, whichever layers it is made of. Only the figures in which
    :math:`\hat m` is positive matter. With a binary :math:`w_i` for each of them, that may be 1 only if
    :math:`m_i \le \theta_i = (1 - \epsilon) \hat m_i`,

    .. math::
        z \ge (1 - \epsilon) \hat z \, \bigl(1 - \textstyle\sum_i w_i\bigr), \qquad
        m_i \le \theta_i + (M_i - \theta_i)(1 - w_i), \qquad
        w_i \le \textstyle\sum_l \sum_{b \notin D_{li}} x_{lb}

    with :math:`M_i` the most that any choice has. The last rows say the same in whole numbers: figure i is
    less only if some layer that adds to it takes a strategy that adds less or, at an end of an edge, another layout;
    :math:`D_{li}` are those that do not.
    """
    tables = tables_of(instance)
    most = most_bytes(tables)
    figures = [np.concatenate(tables.bytes_of(choices)) for choices, _ in cuts]
    below = [(cut, i) for cut, sent in enumerate(figures) for i in np.flatnonzero(sent > 0).tolist()]
    block.CUTS = pyo.RangeSet(0, len(cuts) - 1, doc="choices of which something is known")
    block.BELOW = pyo.Set(dimen=2, initialize=below, doc="(cut, figure)")
    block.below = pyo.Var(block.BELOW, domain=pyo.Binary, doc="the figure may be less than the cut's")

    @block.Constraint(block.BELOW, doc="what may be less is less")
    def less_is_less(b: Any, cut: int, i: int) -> Any:
        threshold = (1 - _MARGIN) * figures[cut][i]
        room = most[i] - threshold
        sent = (unit / (room * weights[i]), b.share[i])
        return linear([sent, (1.0, b.below[cut, i])]) <= 1 + threshold / room

    @block.Constraint(block.BELOW, doc="a figure is less only if some layer adds less to it")
    def less_has_a_reason(b: Any, cut: int, i: int) -> Any:
        reasons = _reasons(b, tables, cuts[cut][0], i)
        return linear([(1.0, b.below[cut, i]), *((-1.0, x) for x in reasons)]) <= 0

    @block.Constraint(block.CUTS, doc="with no less to send, the busiest link carries no less")
    def no_less_is_carried(b: Any, cut: int) -> Any:
        known = (1 - _MARGIN) * cuts[cut][1] / unit
        terms = [(-known, b.below[cut, i]) for i in np.flatnonzero(figures[cut] > 0).tolist()]
        return linear([*terms, (-1.0, b.congestion)]) <= -known


def most_bytes(tables: Tables) -> Floats:
    """(sets + patterns,) the most bytes that layer by layer and edge by edge could add up to."""
    most = np.zeros(len(tables.groups_of) + len(tables.patterns))
    for strategies in tables.own:
        largest: dict[int, float] = {}
        for own in strategies:
            for i, amount in own.items():
                largest[i] = max(largest.get(i, 0.0), amount)
        for i, amount in largest.items():
            most[i] += amount
    for edge, amount in enumerate(tables.edge_bytes.tolist()):
        most[tables.moved_figures(edge)] += amount
    return most


def _reasons(block: pyo.Block, tables: Tables, choices: Sequence[int], figure: int) -> list[Any]:
    """Strategies, one of which is taken wherever the figure is less than that of the choices.

    Layers that add to the figure have strategies with which they add no less, whatever their neighbours take of such.
    Twins have those that are no less for each of them: whoever takes one stands for any of them.
    """
    pattern = figure - len(tables.groups_of)
    first = {layer: layers[0] for layers in block.twins for layer in layers}
    safe: dict[int, npt.NDArray[np.bool_]] = {}

    def keep(layer: int, harmless: npt.NDArray[np.bool_]) -> None:
        safe[first[layer]] = safe.get(first[layer], np.ones(len(harmless), dtype=bool)) & harmless

    for layer, a in enumerate(choices):
        own = np.array([amounts.get(figure, 0.0) for amounts in tables.own[layer]])
        if own[a] > 0:
            keep(layer, own >= own[a])
    if pattern >= 0:
        for edge, (source, target) in enumerate(tables.instance.edges):
            moves = tables.moves[edge]
            a, b = choices[source], choices[target]
            if moves[a, b] == pattern and tables.edge_bytes[edge] > 0:
                keep(source, (moves == moves[a]).all(axis=1))
                keep(target, (moves[:, b] == moves.T).all(axis=1))
    return [block.strategy[layer, b] for layer, of_layer in safe.items() for b in np.flatnonzero(~of_layer).tolist()]
