"""Which strategy each layer takes, as integer variables, and what follows for times, memory, bytes and errors."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression

from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.symmetry.twins import single_layers, spread, twin_layers
from ddlopt.models.codesign.tables import Tables, tables_of
from ddlopt.models.errors import SolverError
from ddlopt.models.tolerances import INTEGRALITY_TOL, NEGLIGIBLE_COEFFICIENT


def add_strategies(block: pyo.Block, instance: CodesignInstance, unit_s: float, collapse: bool = False) -> None:
    r"""Add one-hot choices, the pairs that they make along edges, compute time and memory to ``block``.

    With :math:`x_{la} = 1` if layer l takes strategy a, and :math:`y_{eab} = 1` if the two ends of edge e take a and b
    (the local polytope; edges along which nothing ever moves have none, and strategies after which the same moves
    whatever is at the other end share one):

    .. math::
        & \textstyle\sum_a x_{la} = 1, \qquad \sum_b y_{eab} = x_{ua}, \qquad \sum_a y_{eab} = x_{vb} \\
        & C \ge \textstyle\sum_{la:\ s \in S_{la}} t_{la} x_{la} \quad \text{for every server s}, \qquad
          \textstyle\sum_{la:\ s \in S_{la}} m_{la} x_{la} \le M , \qquad
          \textstyle\sum_{la} e_{la} x_{la} \le E \\
        & f_v \ge f_u + \textstyle\sum_a t_{va} x_{va} \quad \text{for every edge } (u, v), \qquad C \ge f_v

    The last one in the first line is the budget for what compression loses, where there is one.
    The two sums over what runs on server s go by way of one variable for every set of servers :math:`S_{la}` that there
    is, which keeps the matrix sparse.

    With ``collapse``, the K layers of each class of :func:`~ddlopt.models.codesign.symmetry.twins.twin_layers` become
    one: :math:`x_{la}` is how many of them take a, :math:`\sum_a x_{la} = K`, and :math:`y_{eab}` counts their edges.
    All rows remain, as they are sums over the class, except that a path leads through the slowest strategy taken: with
    binary :math:`u_{l\tau} = 1` if any takes a strategy of time at least τ, for the times τ of the strategies in order,

    .. math::
        \textstyle\sum_{a:\ t_{la} \ge \tau} x_{la} \le K u_{l\tau} , \qquad
        f_l \ge f_u + \sum_\tau (\tau - \tau^-) u_{l\tau}

    where :math:`\tau^-` is the time before τ. Solutions are those of the one-hot form up to exchanges of twins.

    Times are in ``unit_s``; bytes in ``unit_s`` times the bandwidth of a link, so that a link that carries one unit is
    busy for one unit of time.

    Ports
    -----
    ``strategy[l, a]``, ``transition[e, a, b]``
        x and y; a and b stand for all strategies of the layer with the same row (column) of the edge's ``moves``. With
        ``collapse`` of the first layer of each class, and of its edges; integers up to the class's size.
    ``compute``
        C, at least the compute time.
    ``reduced[q]``
        Gradient bytes in each group of the q-th group set, of all layers: an expression in x.
    ``moved[p]``
        Bytes of the p-th pattern of :class:`~ddlopt.models.codesign.tables.Tables`, of all layers and edges: an
        expression in x and y.
    """
    tables = tables_of(instance)
    classes = twin_layers(tables) if collapse else single_layers(tables)
    block.twins = classes
    firsts = [layers[0] for layers in classes]
    size = {layers[0]: len(layers) for layers in classes}
    block.LAYERS = pyo.Set(initialize=firsts, doc="layers; of twins the first")
    block.CHOICES = pyo.Set(
        dimen=2,
        initialize=[(layer, a) for layer in firsts for a in range(tables.sizes[layer])],
        doc="(layer, strategy)",
    )
    block.strategy = pyo.Var(
        block.CHOICES,
        domain=pyo.NonNegativeIntegers,
        bounds=lambda _, layer, __: (0, size[layer]),
        doc="how many of the layer and its twins take the strategy",
    )

    @block.Constraint(block.LAYERS, doc="every layer has one strategy")
    def layer_has_a_strategy(b: Any, layer: int) -> Any:
        return linear((1.0, b.strategy[layer, a]) for a in range(tables.sizes[layer])) == size[layer]

    edges = [e for e, ends in enumerate(instance.edges) if size.keys() >= set(ends)]
    _add_transitions(block, instance, edges, size)
    _add_servers(block, instance, unit_s)
    _add_error(block, instance)
    _add_paths(block, instance, edges, size, unit_s)
    _add_bytes(block, instance, tables, unit_s * instance.link_bandwidth_bytes_per_s)


def read_choices(block: pyo.Block, instance: CodesignInstance) -> tuple[int, ...]:
    """Index of each layer's strategy.

    Raises
    ------
    SolverError
        If one is chosen in part.
    """
    counts: list[list[int]] = []
    for layers in block.twins:
        first = layers[0]
        values = [pyo.value(block.strategy[first, a]) for a in range(tables_of(instance).sizes[first])]
        whole = [round(value) for value in values]
        odd = max(range(len(values)), key=lambda a: abs(values[a] - whole[a]))
        if abs(values[odd] - whole[odd]) > INTEGRALITY_TOL or sum(whole) != len(layers):
            raise SolverError(f"strategy[{first}, {odd}] = {values[odd]:.6g} is not integral; solve to integrality")
        counts.append(whole)
    return spread(block.twins, counts)


def set_choices(block: pyo.Block, instance: CodesignInstance, choices: tuple[int, ...]) -> None:
    """Set the values of ``strategy`` and ``transition``, for a start."""
    twins = {layers[0]: layers for layers in block.twins}
    for layer, a in block.CHOICES:
        block.strategy[layer, a].set_value(sum(choices[twin] == a for twin in twins[layer]))
    for edge, a, b in block.TRANSITIONS:
        source, target = instance.edges[edge]
        moves = tables_of(instance).moves[edge]
        leaving = sum(np.array_equal(moves[choices[twin]], moves[a]) for twin in twins[source])
        entering = sum(np.array_equal(moves[:, choices[twin]], moves[:, b]) for twin in twins[target])
        block.transition[edge, a, b].set_value(leaving * entering)


def linear(terms: Iterable[tuple[float, Any]]) -> Any:
    """A linear expression of (coefficient, variable) pairs, without what a solver would not keep; there may be none.

    In units of an iteration that is less than a nanosecond in a second.
    """
    pairs = [(c, v) for c, v in terms if abs(c) > NEGLIGIBLE_COEFFICIENT]
    return LinearExpression(constant=0.0, linear_coefs=[c for c, _ in pairs], linear_vars=[v for _, v in pairs])


def _add_transitions(block: pyo.Block, instance: CodesignInstance, edges: list[int], size: dict[int, int]) -> None:
    tables = tables_of(instance)
    same = {
        e: (_same_rows(tables.moves[e]), _same_rows(tables.moves[e].T))
        for e in edges
        if (tables.moves[e] >= 0).any() and tables.edge_bytes[e]
    }
    # One end of an edge is a single layer, so that there are as many edges of a kind as twins at the other end.
    number = {e: size[instance.edges[e][0]] * size[instance.edges[e][1]] for e in same}
    pairs = [(e, a, b) for e, (before, after) in same.items() for a in before for b in after]
    block.TRANSITIONS = pyo.Set(dimen=3, initialize=pairs, doc="(edge, strategy of its source, of its target)")
    block.transition = pyo.Var(
        block.TRANSITIONS, bounds=lambda _, e, *__: (0, number[e]), doc="the ends of the edge take such strategies"
    )
    block.LEAVING = pyo.Set(dimen=2, initialize=[(e, a) for e, (before, _) in same.items() for a in before])
    block.ENTERING = pyo.Set(dimen=2, initialize=[(e, b) for e, (_, after) in same.items() for b in after])

    @block.Constraint(block.LEAVING, doc="pairs agree with the source's strategy")
    def source_agrees(b: Any, edge: int, a: int) -> Any:
        (source, target), (before, after) = instance.edges[edge], same[edge]
        pairs = [(1.0, b.transition[edge, a, other]) for other in after]
        return linear([*pairs, *((-float(size[target]), b.strategy[source, like]) for like in before[a])]) == 0

    @block.Constraint(block.ENTERING, doc="pairs agree with the target's strategy")
    def target_agrees(b: Any, edge: int, other: int) -> Any:
        (source, target), (before, after) = instance.edges[edge], same[edge]
        pairs = [(1.0, b.transition[edge, a, other]) for a in before]
        return linear([*pairs, *((-float(size[source]), b.strategy[target, like]) for like in after[other])]) == 0


def _same_rows(moves: npt.NDArray[np.int64]) -> dict[int, list[int]]:
    """Rows of a table by the first one that is the same."""
    first: dict[bytes, int] = {}
    found: dict[int, list[int]] = {}
    for a, row in enumerate(moves):
        found.setdefault(first.setdefault(row.tobytes(), a), []).append(a)
    return found


def _server_sets(block: pyo.Block, tables: Tables) -> tuple[dict[int, list[tuple[int, int]]], npt.NDArray[np.bool_]]:
    """Choices by the set of servers that runs them, and (n, sets) which servers are in it."""
    number: dict[bytes, int] = {}
    members: dict[int, list[tuple[int, int]]] = {}
    columns = []
    for layer, a in block.CHOICES:
        servers = tables.runs_on[layer][a]
        key = servers.tobytes()
        if key not in number:
            number[key] = len(number)
            columns.append(np.isin(np.arange(tables.instance.servers), servers))
        members.setdefault(number[key], []).append((layer, a))
    return members, np.stack(columns, axis=1)


def _add_servers(block: pyo.Block, instance: CodesignInstance, unit_s: float) -> None:
    """Compute time and memory of servers; those that run the same layers whatever is chosen have one row."""
    tables, limit = tables_of(instance), instance.most_memory_bytes
    choices, runs = _server_sets(block, tables)
    _, servers = np.unique(runs, axis=0, return_index=True)
    sets_of = {
        server: np.flatnonzero(runs[server]).tolist() for server in sorted(servers.tolist()) if runs[server].any()
    }
    block.compute = pyo.Var(bounds=(0, None), doc="compute time")
    block.SERVER_SETS = pyo.RangeSet(0, len(choices) - 1, doc="sets of servers that strategies run on")
    block.BUSY = pyo.Set(initialize=list(sets_of), doc="servers, one for all that run the same")
    block.set_time = pyo.Var(
        block.SERVER_SETS, bounds=(0, None), doc="time that the strategies on a set of servers take"
    )

    @block.Constraint(block.SERVER_SETS, doc="strategies on a set of servers take their times")
    def set_takes_time(b: Any, place: int) -> Any:
        terms = [(tables.compute_s[layer][a] / unit_s, b.strategy[layer, a]) for layer, a in choices[place]]
        return linear([*terms, (-1.0, b.set_time[place])]) == 0

    @block.Constraint(block.BUSY, doc="compute time is that of the busiest server")
    def server_computes(b: Any, server: int) -> Any:
        return linear([*((1.0, b.set_time[place]) for place in sets_of[server]), (-1.0, b.compute)]) <= 0

    if math.isinf(limit):
        return
    block.set_memory = pyo.Var(
        block.SERVER_SETS, bounds=(0, 1), doc="part of the memory that the strategies on a set of servers take"
    )

    @block.Constraint(block.SERVER_SETS, doc="strategies on a set of servers take their memory")
    def set_takes_memory(b: Any, place: int) -> Any:
        terms = [(tables.memory_bytes[layer][a] / limit, b.strategy[layer, a]) for layer, a in choices[place]]
        return linear([*terms, (-1.0, b.set_memory[place])]) == 0

    @block.Constraint(block.BUSY, doc="strategies fit into the memory of a server")
    def memory_suffices(b: Any, server: int) -> Any:
        return linear((1.0, b.set_memory[place]) for place in sets_of[server]) <= 1


def _add_error(block: pyo.Block, instance: CodesignInstance) -> None:
    """Strategies together lose no more than the budget; one that does so by itself is taken by no layer."""
    tables, most = tables_of(instance), instance.most_error
    if instance.error_budget is None:
        return
    for layer, a in block.CHOICES:
        if tables.errors[layer][a] > most:
            block.strategy[layer, a].setub(0)
    lost = {(layer, a): float(tables.errors[layer][a]) for layer, a in block.CHOICES}
    row = linear((error / most, block.strategy[each]) for each, error in lost.items() if 0 < error <= most)
    if row.linear_vars:
        block.error_budget_is_kept = pyo.Constraint(expr=row <= 1, doc="strategies lose no more than they may")


def _add_paths(
    block: pyo.Block, instance: CodesignInstance, edges: list[int], size: dict[int, int], unit_s: float
) -> None:
    """Compute time is at least that of the longest path."""
    times = [(each / unit_s).tolist() for each in tables_of(instance).compute_s]
    block.finish = pyo.Var(block.LAYERS, bounds=(0, None), doc="when a layer is done, with nothing to send")
    steps = {layer: sorted(set(times[layer])) for layer, twins in size.items() if twins > 1}
    block.STEPS = pyo.Set(
        dimen=2, initialize=[(layer, step) for layer, found in steps.items() for step in range(1, len(found))]
    )
    block.slow = pyo.Var(block.STEPS, domain=pyo.Binary, doc="a twin takes a strategy of the step's time or a longer")

    @block.Constraint(block.STEPS, doc="no twin takes a slow strategy unless it counts")
    def slow_strategies_count(b: Any, layer: int, step: int) -> Any:
        taken = [(1.0, b.strategy[layer, a]) for a, time in enumerate(times[layer]) if time >= steps[layer][step]]
        return linear([*taken, (-float(size[layer]), b.slow[layer, step])]) <= 0

    def own_time(b: Any, layer: int) -> tuple[float, list[Any]]:
        if layer not in steps:
            return 0.0, [(time, b.strategy[layer, a]) for a, time in enumerate(times[layer])]
        found = steps[layer]
        return found[0], [(found[k] - found[k - 1], b.slow[layer, k]) for k in range(1, len(found))]

    block.EDGES = pyo.Set(initialize=edges, doc="edges; of twins the first one's")

    @block.Constraint(block.EDGES, doc="a layer begins after those that it reads")
    def layers_follow(b: Any, edge: int) -> Any:
        source, target = instance.edges[edge]
        least, taken = own_time(b, target)
        return linear([*taken, (1.0, b.finish[source]), (-1.0, b.finish[target])]) <= -least

    @block.Constraint(block.LAYERS, doc="a layer takes its time")
    def layers_take_time(b: Any, layer: int) -> Any:
        least, taken = own_time(b, layer)
        return linear([*taken, (-1.0, b.finish[layer])]) <= -least

    @block.Constraint(block.LAYERS, doc="compute time is that of the longest path")
    def path_computes(b: Any, layer: int) -> Any:
        return b.finish[layer] <= b.compute


def _add_bytes(block: pyo.Block, instance: CodesignInstance, tables: Tables, unit: float) -> None:
    terms: list[list[Any]] = [[] for _ in (*tables.groups_of, *tables.patterns)]
    for layer, a in block.CHOICES:
        for figure, amount in tables.own[layer][a].items():
            terms[figure].append((amount / unit, block.strategy[layer, a]))
    reduced, moved = terms[: len(tables.groups_of)], terms[len(tables.groups_of) :]
    for edge, a, b in block.TRANSITIONS:
        pattern = tables.moves[edge][a, b]
        if pattern >= 0:
            moved[pattern].append((tables.edge_bytes[edge] / unit, block.transition[edge, a, b]))
    block.SETS = pyo.RangeSet(0, len(reduced) - 1, doc="group sets")
    block.PATTERNS = pyo.RangeSet(0, len(moved) - 1, doc="patterns")
    block.reduced = pyo.Expression(block.SETS, rule=lambda b, q: linear(reduced[q]), doc="gradient bytes")
    block.moved = pyo.Expression(block.PATTERNS, rule=lambda b, p: linear(moved[p]), doc="bytes of a pattern")
