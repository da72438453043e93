"""Strategy selection as an integer program over the local polytope."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression
from scipy import sparse

from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.deployment.strategies.core import Core, core_of
from ddlopt.models.deployment.strategies.instance import StrategyAssignment, StrategyInstance
from ddlopt.models.deployment.strategies.ragged import Floats, Ints, offsets
from ddlopt.models.errors import SolverError
from ddlopt.models.remembered import remembered
from ddlopt.models.tolerances import INTEGRALITY_TOL
from ddlopt.models.units import between, unit_of

_FULL = 1e3
"""What a limit of memory is in its row."""


class Arrays(NamedTuple):
    """The program as arrays: minimise ``cost @ x`` with ``row_lower <= matrix @ x <= row_upper`` and x in 0..1.

    Columns are the strategies of the core, then its allowed pairs; only the first ``strategies`` must be integers.
    """

    cost: Floats
    matrix: Any
    row_lower: Floats
    row_upper: Floats
    strategies: int
    pairs: npt.NDArray[np.int64]
    """Place in the core's tables of each allowed pair."""


def arrays_of(core: Core, unit: float = 1.0) -> Arrays:
    """The program of a core, with costs in ``unit``; rows are those of nodes, of edges, and of memory."""
    size, choices = core.size, len(core.cost)
    pairs = np.flatnonzero(np.isfinite(core.table))
    counts, edges = core.counts, core.edges
    sizes = np.diff(core.table_start)
    edge = np.repeat(np.arange(len(edges)), sizes)[pairs]
    within = pairs - core.table_start[edge]
    first, second = np.divmod(within, counts[edges[edge, 1]])
    # Rows of an edge: one for each strategy of its first node, then of its second.
    spans = counts[edges[:, 0]] + counts[edges[:, 1]] if len(edges) else np.zeros(0, dtype=np.int64)
    at = size + offsets(spans)
    row_first, row_second = at[edge] + first, at[edge] + counts[edges[edge, 0]] + second
    column = choices + np.arange(len(pairs))
    owner = np.repeat(np.arange(len(edges)), spans)
    inner = np.arange(len(owner)) - (at[:-1] - size)[owner]
    is_first = inner < counts[edges[owner, 0]]
    of_strategy = np.where(
        is_first, core.start[edges[owner, 0]] + inner, core.start[edges[owner, 1]] + inner - counts[edges[owner, 0]]
    )
    marginal = size + np.arange(len(owner))
    memory_rows, memory_columns, memory_values = _memory(core, int(at[-1]))
    rows = np.concatenate((np.repeat(np.arange(size), counts), row_first, row_second, marginal, memory_rows))
    columns = np.concatenate((np.arange(choices), column, column, of_strategy, memory_columns))
    values = np.concatenate((np.ones(choices + 2 * len(pairs)), np.full(len(owner), -1.0), memory_values))
    height = int(at[-1]) + len(core.memory.limit)
    matrix = sparse.csr_array((values, (rows, columns)), shape=(height, choices + len(pairs)))
    lower, upper = np.zeros(height), np.zeros(height)
    lower[:size] = upper[:size] = 1.0
    lower[at[-1] :] = -np.inf
    upper[at[-1] :] = np.where(core.memory.limit > 0, _FULL, 0.0)
    cost = np.concatenate((core.cost, core.table[pairs])) / unit
    return Arrays(cost, matrix, lower, upper, choices, pairs)


def _memory(core: Core, offset: int) -> tuple[Ints, Ints, Floats]:
    """Rows, columns and values of memory, each row scaled to the same limit."""
    memory = core.memory
    item = np.repeat(np.arange(len(memory.node)), np.diff(memory.start))
    column = core.start[memory.node[item]] + np.arange(len(item)) - memory.start[item]
    used = np.flatnonzero(memory.use > 0)
    spans = (memory.high - memory.low)[item[used]]
    entry = np.repeat(used, spans)
    begun = np.cumsum(spans) - spans
    row = memory.low[item[entry]] + np.arange(len(entry)) - np.repeat(begun, spans)
    scale = _FULL / np.where(memory.limit > 0, memory.limit, _FULL * np.maximum(1.0, memory.use.max(initial=1.0)))
    return row + offset, column[entry], memory.use[entry] * scale[row]


@dataclass(frozen=True)
class StrategySelection(FormulationBase):
    r"""One strategy for each node and one pair of strategies for each edge, which agree.

    With :math:`x_{ia} = 1` if node i has strategy a, and :math:`y_{e,ab} = 1` if the ends of edge e = ij have a and b,

    .. math::
        \min\ & \textstyle\sum_{ia} c_i(a)\, x_{ia} + \sum_{e,ab} C_e(a, b)\, y_{e,ab} \\
        & \textstyle\sum_a x_{ia} = 1 && \text{for every node} \\
        & \textstyle\sum_b y_{e,ab} = x_{ia}, \quad \sum_a y_{e,ab} = x_{jb} && \text{for every edge } e = ij
          \text{, all } a \text{ and } b \\
        & \textstyle\sum_{i \text{ live at } t} u_i(a)\, x_{ia} \le U && \text{for every maximal set of live nodes} \\
        & x_{ia} \in \{0, 1\}, \quad y_{e,ab} \ge 0 .

    Alpa's program is that with inequalities in place of the equations of edges, all variables binary and a row of
    memory for every time. What is left out here first is a matter of :mod:`ddlopt.models.deployment.strategies.core`:
    there are no variables for what is forbidden or without an allowed partner or too large for what memory leaves;
    parallel edges are one edge, aliased nodes one node, and rows of memory are those that can bind. No choice that is
    allowed is left out. For integral x the equations leave y no choice, so it is continuous. Together the equations
    describe the local polytope; on a forest without memory all its vertices are integral.

    The program is made as arrays (:func:`arrays_of`), which a solver may also take directly; Pyomo's rows are these.

    Parameters
    ----------
    unit : float, optional
        In which costs are measured in the model; by default :func:`cost_unit`, of which the cost is about a thousand.

    Ports
    -----
    ``choice[i, a]``
        x, for nodes and strategies of the instance that are left; of aliased nodes the first.
    ``pair[i, j, a, b]``
        y, for edges with i < j.
    ``objective``
        Cost in units, to be minimised.

    References
    ----------
    L. Zheng et al., "Alpa: Automating inter- and intra-operator parallelism for distributed deep learning", OSDI 2022,
    section 4.2. The local polytope: M. J. Wainwright, M. I. Jordan, "Graphical models, exponential families, and
    variational inference", Foundations and Trends in Machine Learning 1, 2008. What is left out beforehand is ours.
    """

    unit: float | None = None

    covers: ClassVar[type[Instance]] = StrategyInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"
    # With costs of a billion beside some of one, tolerances of a solver are worth something: evaluate decides.
    outer: ClassVar[bool] = True

    def build(self, block: pyo.Block, instance: StrategyInstance) -> None:
        """Fill ``block``."""
        core = core_of(instance)
        arrays = arrays_of(core, self.unit or cost_unit(instance))
        nodes, keys = _keys(core, arrays)
        block.CHOICES = pyo.Set(dimen=2, initialize=keys[: arrays.strategies], doc="node and strategy")
        block.PAIRS = pyo.Set(dimen=4, initialize=keys[arrays.strategies :], doc="two nodes and strategies of both")
        block.choice = pyo.Var(block.CHOICES, domain=pyo.Binary, doc="1 if the node has the strategy")
        block.pair = pyo.Var(block.PAIRS, bounds=(0, 1), doc="1 if the two nodes have these strategies")
        columns = [*block.choice.values(), *block.pair.values()]
        matrix = arrays.matrix
        bounds, index, data = matrix.indptr.tolist(), matrix.indices.tolist(), matrix.data.tolist()

        def row(number: int) -> LinearExpression:
            terms = range(bounds[number], bounds[number + 1])
            return LinearExpression(
                linear_coefs=[data[k] for k in terms], linear_vars=[columns[index[k]] for k in terms]
            )

        limits = len(core.memory.limit)
        marginals = matrix.shape[0] - core.size - limits
        block.node_has_one_strategy = pyo.Constraint(nodes, doc="every node has one strategy")
        for number, node in enumerate(nodes):
            block.node_has_one_strategy[node] = row(number) == 1
        block.pairs_agree_with_nodes = pyo.Constraint(pyo.RangeSet(0, marginals - 1), doc="the local polytope")
        for number in range(marginals):
            block.pairs_agree_with_nodes[number] = row(core.size + number) == 0
        block.memory_suffices = pyo.Constraint(core.memory.times.tolist(), doc="at a time for each maximal live set")
        for number, time in enumerate(core.memory.times.tolist()):
            place = core.size + marginals + number
            block.memory_suffices[time] = (None, row(place), float(arrays.row_upper[place]))
        block.objective = pyo.Expression(
            expr=LinearExpression(linear_coefs=arrays.cost.tolist(), linear_vars=columns, constant=0.0)
        )

    def start(self, block: pyo.Block, instance: StrategyInstance, solution: StrategyAssignment) -> None:
        """Set ``choice``; pairs follow."""
        for (node, strategy), variable in block.choice.items():
            variable.set_value(int(solution.strategies[node] == strategy))

    def read(self, block: pyo.Block, instance: StrategyInstance) -> StrategyAssignment:
        """The strategies.

        Raises
        ------
        SolverError
            If a node has a strategy in part.
        """
        chosen: dict[int, int] = {}
        for (node, strategy), variable in block.choice.items():
            value = variable.value
            if value is None or abs(value - round(value)) > INTEGRALITY_TOL:
                raise SolverError(f"node {node} of '{instance.name}' has strategy {strategy} in part: {value}")
            if value > 0.5:
                chosen[node] = strategy
        first = {node: nodes[0] for nodes in map(sorted, instance.aliases) for node in nodes}
        strategies = tuple(chosen[first.get(node, node)] for node in range(instance.size))
        return StrategyAssignment(instance=instance.name, strategies=strategies)

    def objective_value(self, instance: StrategyInstance, value: float) -> float:
        """The cost."""
        return value * (self.unit or cost_unit(instance))


@remembered
def cost_unit(instance: StrategyInstance) -> float:
    """Between the least of every node and edge and the cost of the choice that is cheapest node by node."""
    core = core_of(instance)
    least = np.minimum.reduceat(core.cost, core.start[:-1])
    chosen = core.start[:-1] + 0
    low, high = float(least.sum()), float(least.sum())
    for i in range(core.size):
        chosen[i] = int(core.cost[core.start[i] : core.start[i + 1]].argmin())
    for e, (i, j) in enumerate(core.edges.tolist()):
        table = core.table[core.table_start[e] : core.table_start[e + 1]]
        low += float(table.min())
        high += float(table[chosen[i] * core.counts[j] + chosen[j]])
    finite = core.table[np.isfinite(core.table)]
    return unit_of(between(low, high), float(core.cost.max(initial=0.0)), float(finite.max(initial=0.0)))


def _keys(core: Core, arrays: Arrays) -> tuple[list[int], list[tuple[int, ...]]]:
    """First node of the instance of each node, and indices of the columns."""
    _, firsts = np.unique(core.class_of, return_index=True)
    owner = np.repeat(np.arange(core.size), core.counts)
    keys: list[tuple[int, ...]] = list(zip(firsts[owner].tolist(), core.original.tolist(), strict=True))
    sizes = np.diff(core.table_start)
    edge = np.repeat(np.arange(len(core.edges)), sizes)[arrays.pairs]
    u, v = core.edges[edge, 0], core.edges[edge, 1]
    first, second = np.divmod(arrays.pairs - core.table_start[edge], core.counts[v])
    ends = firsts[u].tolist(), firsts[v].tolist()
    taken = core.original[core.start[u] + first].tolist(), core.original[core.start[v] + second].tolist()
    keys += list(zip(*ends, *taken, strict=True))
    return firsts.tolist(), keys
