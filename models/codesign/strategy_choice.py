"""Which strategy each layer takes, as binary variables, and what follows for times, memory and bytes."""

from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression

from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.tables import Tables
from ddlopt.models.errors import SolverError

_INTEGRALITY = 1e-4


def add_strategies(block: pyo.Block, instance: CodesignInstance, unit_s: float) -> None:
    r"""Add one-hot choices, the pairs that they make along edges, compute time and memory to ``block``.

    With :math:`x_{la} = 1` if layer l takes strategy a, and :math:`y_{eab} = 1` if the two ends of edge e take a and b
    (the local polytope; edges along which nothing ever moves have none):

    .. math::
        & \textstyle\sum_a x_{la} = 1, \qquad \sum_b y_{eab} = x_{ua}, \qquad \sum_a y_{eab} = x_{vb} \\
        & C \ge \textstyle\sum_{la:\ s \in S_{la}} t_{la} x_{la} \quad \text{for every server s}, \qquad
          \textstyle\sum_{la:\ s \in S_{la}} m_{la} x_{la} \le M \\
        & f_v \ge f_u + \textstyle\sum_a t_{va} x_{va} \quad \text{for every edge } (u, v), \qquad C \ge f_v

    Times are in ``unit_s``; bytes in ``unit_s`` times the bandwidth of a link, so that a link that carries one unit is
    busy for one unit of time.

    Ports
    -----
    ``strategy[l, a]``, ``transition[e, a, b]``
        x and y.
    ``compute``
        C, at least the compute time.
    ``reduced[q]``
        Gradient bytes in each group of the q-th group set: an expression in x.
    ``moved[p]``
        Bytes of the p-th pattern of :class:`~ddlopt.models.codesign.tables.Tables`: an expression in x and y.
    """
    tables = instance.tables
    layers = range(len(tables.sizes))
    choices = [(layer, a) for layer in layers for a in range(tables.sizes[layer])]
    block.LAYERS = pyo.RangeSet(0, len(tables.sizes) - 1, doc="layers")
    block.CHOICES = pyo.Set(dimen=2, initialize=choices, doc="(layer, strategy)")
    block.strategy = pyo.Var(block.CHOICES, domain=pyo.Binary, doc="the layer takes the strategy")

    @block.Constraint(block.LAYERS, doc="every layer has one strategy")
    def layer_has_a_strategy(b: Any, layer: int) -> Any:
        return _sum((1.0, b.strategy[layer, a]) for a in range(tables.sizes[layer])) == 1

    _add_transitions(block, instance, tables)
    _add_compute(block, instance, tables, unit_s)
    _add_memory(block, instance, tables)
    _add_bytes(block, instance, tables, unit_s * instance.link_bandwidth_bytes_per_s)


def read_choices(block: pyo.Block, instance: CodesignInstance) -> tuple[int, ...]:
    """Index of each layer's strategy.

    Raises
    ------
    SolverError
        If one is chosen in part.
    """
    choices = []
    for layer, size in enumerate(instance.tables.sizes):
        values = [pyo.value(block.strategy[layer, a]) for a in range(size)]
        chosen = max(range(size), key=values.__getitem__)
        if abs(values[chosen] - 1) > _INTEGRALITY:
            raise SolverError(
                f"strategy[{layer}, {chosen}] = {values[chosen]:.6g} is not integral; solve to integrality"
            )
        choices.append(chosen)
    return tuple(choices)


def set_choices(block: pyo.Block, instance: CodesignInstance, choices: tuple[int, ...]) -> None:
    """Set the values of ``strategy`` and ``transition``, for a start."""
    for layer, a in block.CHOICES:
        block.strategy[layer, a].set_value(int(choices[layer] == a))
    for edge, a, b in block.TRANSITIONS:
        source, target = instance.edges[edge]
        block.transition[edge, a, b].set_value(int((choices[source], choices[target]) == (a, b)))


def _sum(terms: Any) -> Any:
    """A linear expression of (coefficient, variable) pairs; zero where there are none."""
    pairs = [(c, v) for c, v in terms if c]
    if not pairs:
        return 0.0
    return LinearExpression(constant=0.0, linear_coefs=[c for c, _ in pairs], linear_vars=[v for _, v in pairs])


def _add_transitions(block: pyo.Block, instance: CodesignInstance, tables: Tables) -> None:
    moving = [
        edge for edge in range(len(instance.edges)) if (tables.moves[edge] >= 0).any() and tables.edge_bytes[edge]
    ]
    pairs = [(e, a, b) for e in moving for a in range(len(tables.moves[e])) for b in range(len(tables.moves[e][a]))]
    block.TRANSITIONS = pyo.Set(dimen=3, initialize=pairs, doc="(edge, strategy of its source, of its target)")
    block.transition = pyo.Var(block.TRANSITIONS, bounds=(0, 1), doc="the ends of the edge take these strategies")
    block.LEAVING = pyo.Set(dimen=2, initialize=[(e, a) for e in moving for a in range(len(tables.moves[e]))])
    block.ENTERING = pyo.Set(dimen=2, initialize=[(e, b) for e in moving for b in range(len(tables.moves[e][0]))])

    @block.Constraint(block.LEAVING, doc="pairs agree with the source's strategy")
    def source_agrees(b: Any, edge: int, a: int) -> Any:
        targets = range(len(tables.moves[edge][0]))
        pairs = [(1.0, b.transition[edge, a, other]) for other in targets]
        return _sum([*pairs, (-1.0, b.strategy[instance.edges[edge][0], a])]) == 0

    @block.Constraint(block.ENTERING, doc="pairs agree with the target's strategy")
    def target_agrees(b: Any, edge: int, other: int) -> Any:
        pairs = [(1.0, b.transition[edge, a, other]) for a in range(len(tables.moves[edge]))]
        return _sum([*pairs, (-1.0, b.strategy[instance.edges[edge][1], other])]) == 0


def _add_compute(block: pyo.Block, instance: CodesignInstance, tables: Tables, unit_s: float) -> None:
    block.compute = pyo.Var(bounds=(0, None), doc="compute time")
    block.finish = pyo.Var(block.LAYERS, bounds=(0, None), doc="when a layer is done, with nothing to send")
    # Rows of servers that run the same layers whatever is chosen are the same row.
    by_row: dict[tuple[tuple[int, int], ...], int] = {}
    for server in range(instance.servers):
        here = [(layer, a) for layer, a in block.CHOICES if server in set(tables.runs_on[layer][a].tolist())]
        by_row.setdefault(tuple(here), server)
    block.BUSY = pyo.Set(initialize=list(by_row.values()), doc="servers, one for all that run the same")
    rows = {server: here for here, server in by_row.items()}

    def own_time(b: Any, layer: int) -> Any:
        return [(tables.compute_s[layer][a] / unit_s, b.strategy[layer, a]) for a in range(tables.sizes[layer])]

    @block.Constraint(block.BUSY, doc="compute time is that of the busiest server")
    def server_computes(b: Any, server: int) -> Any:
        terms = [(tables.compute_s[layer][a] / unit_s, b.strategy[layer, a]) for layer, a in rows[server]]
        return _sum([*terms, (-1.0, b.compute)]) <= 0

    block.rows_of_servers = rows
    block.EDGES = pyo.RangeSet(0, len(instance.edges) - 1, doc="edges")

    @block.Constraint(block.EDGES, doc="a layer begins after those that it reads")
    def layers_follow(b: Any, edge: int) -> Any:
        source, target = instance.edges[edge]
        return _sum([*own_time(b, target), (1.0, b.finish[source]), (-1.0, b.finish[target])]) <= 0

    @block.Constraint(block.LAYERS, doc="a layer takes its time")
    def layers_take_time(b: Any, layer: int) -> Any:
        return _sum([*own_time(b, layer), (-1.0, b.finish[layer])]) <= 0

    @block.Constraint(block.LAYERS, doc="compute time is that of the longest path")
    def path_computes(b: Any, layer: int) -> Any:
        return b.finish[layer] <= b.compute


def _add_memory(block: pyo.Block, instance: CodesignInstance, tables: Tables) -> None:
    limit = instance.device.memory_bytes
    if limit is None:
        return

    @block.Constraint(block.BUSY, doc="strategies fit into the memory of a server")
    def memory_suffices(b: Any, server: int) -> Any:
        taken = [
            (tables.memory_bytes[layer][a] / limit, b.strategy[layer, a]) for layer, a in b.rows_of_servers[server]
        ]
        row = _sum(taken)
        return row <= 1 if not isinstance(row, float) else pyo.Constraint.Skip


def _add_bytes(block: pyo.Block, instance: CodesignInstance, tables: Tables, unit: float) -> None:
    reduced: list[list[Any]] = [[] for _ in tables.groups_of]
    moved: list[list[Any]] = [[] for _ in tables.patterns]
    for layer, a in block.CHOICES:
        for groups, amount in tables.reductions[layer][a].items():
            reduced[groups].append((amount / unit, block.strategy[layer, a]))
        for pattern, amount in tables.sent[layer][a].items():
            moved[pattern].append((amount / unit, block.strategy[layer, a]))
    for edge, a, b in block.TRANSITIONS:
        pattern = tables.moves[edge][a, b]
        if pattern >= 0:
            moved[pattern].append((tables.edge_bytes[edge] / unit, block.transition[edge, a, b]))
    block.SETS = pyo.RangeSet(0, len(reduced) - 1, doc="group sets")
    block.PATTERNS = pyo.RangeSet(0, len(moved) - 1, doc="patterns")
    block.reduced = pyo.Expression(block.SETS, rule=lambda b, q: _sum(reduced[q]), doc="gradient bytes")
    block.moved = pyo.Expression(block.PATTERNS, rule=lambda b, p: _sum(moved[p]), doc="bytes of a pattern")
