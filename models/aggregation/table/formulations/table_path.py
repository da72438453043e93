"""Entries of lookup tables as paths: an integer program for small tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any, ClassVar, Literal

import numpy as np
import pyomo.environ as pyo

from ddlopt.models.aggregation.table.bounds import table_bound
from ddlopt.models.aggregation.table.instance import LookupFunction, LookupTables, TableInstance
from ddlopt.models.aggregation.table.values import best_values
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import SolverError
from ddlopt.models.linear import Rows, term, total, weighted
from ddlopt.models.tolerances import NEGLIGIBLE_COEFFICIENT
from ddlopt.models.units import check_big_m, unit_of

_PARTS = 16
"""Units that an even division takes: good ones have errors of some of them, or some tenths, and not of millionths."""
MOST_ARCS = 30_000
"""Beyond, the program is of no use: it takes longer than anybody waits."""


@dataclass(frozen=True)
class TablePath(FormulationBase):
    r"""Every table is a path through its operands, whose arcs are the possible entries.

    An arc (a, b) of table k is the entry for operands a to b - 1, with error :math:`\epsilon_{kab}`; with prefixes only
    aligned blocks are arcs. With :math:`x_{kab} = 1` where the path of k has the arc,

    .. math::
        \sum_b x_{kab} - \sum_b x_{kba} &= [a = \text{low}_k] \quad \text{for all operands } a \\
        e_k &\ge \sum_{a \le z < b} \epsilon_{kab} x_{kab} \quad \text{for all operands } z \\
        \sum_k c_k \sum_{a, b} x_{kab} &\le B ,

    and :math:`\sum_k w_k e_k` or the largest :math:`w_k e_k` is minimised. Exactly one arc passes over an operand, so a
    row for each operand says what a row for each arc would, and more of fractional paths. The paths alone are totally
    unimodular; the memory that tables share, and the errors, are what makes solutions of the relaxation fractional.

    Ports
    -----
    ``chosen[k, a, b]``
        x; k is the place of the table, a and b are operands, b beyond the last one of the entry.
    ``error[k]``
        Weighted error of table k, :math:`w_k e_k`, in units of :func:`error_unit`.
    ``objective``
        Their sum or the largest of them, to be minimised.

    References
    ----------
    Segmentation as a shortest path is folklore; rows by operand and the shared memory are ours.
    """

    covers: ClassVar[type[Instance]] = TableInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"
    # Errors need not be tight at a gap.
    outer: ClassVar[bool] = True

    def refuses(self, instance: Any) -> str | None:
        """Tables with too many possible entries."""
        count = 0
        for table in instance.tables:
            n = table.operands
            count += 2 * n if table.entries == "prefixes" else n * (n + 1) // 2
        if count > MOST_ARCS:
            return f"it has a variable for each possible entry, about {count}, at most {MOST_ARCS}; use table"
        return None

    def build(self, block: pyo.Block, instance: TableInstance) -> None:
        """Fill ``block``."""
        unit = error_unit(instance)
        check_big_m(_even_error(instance), table_bound(instance), instance.name, "errors of entries of one length")
        arcs = [_arcs(table) for table in instance.tables]
        indices = [(k, a, b) for k, own in enumerate(arcs) for a, b in own]
        block.ENTRIES = pyo.Set(dimen=3, initialize=indices)
        block.TABLES = pyo.RangeSet(0, len(arcs) - 1)
        block.chosen = pyo.Var(block.ENTRIES, domain=pyo.Binary, doc="1 if the table has the entry")
        block.error = pyo.Var(block.TABLES, bounds=(0, None), doc="weighted error of the table")
        rows = Rows()
        for k, (table, own) in enumerate(zip(instance.tables, arcs, strict=True)):
            errors = table.weight / unit * _errors(table, own)
            variables = [block.chosen[k, a, b] for a, b in own]
            begin: list[list[Any]] = [[] for _ in range(table.operands + 1)]
            end: list[list[Any]] = [[] for _ in range(table.operands + 1)]
            over: list[list[tuple[float, Any]]] = [[] for _ in range(table.operands)]
            for (a, b), error, variable in zip(own, errors.tolist(), variables, strict=True):
                begin[a - table.low].append(variable)
                end[b - table.low].append(variable)
                if error > NEGLIGIBLE_COEFFICIENT:
                    for z in range(a - table.low, b - table.low):
                        over[z].append((error, variable))
            for z, terms in enumerate(over):
                rows["entries_follow"][k, z] = total(begin[z]) - total(end[z]) == float(z == 0)
                if terms:
                    rows["errors_are_bounded"][k, z] = term(block.error[k]) >= weighted(terms)

        sizes = [table.entry_bytes / instance.budget_bytes for table in instance.tables]
        rows["memory_suffices"][None] = weighted((sizes[k], block.chosen[k, a, b]) for k, a, b in indices) <= 1.0
        goal = total(block.error.values())
        if instance.goal != "sum":
            block.largest = pyo.Var(bounds=(0, None), doc="the largest weighted error")
            goal = term(block.largest)
            for k in block.TABLES:
                rows["none_is_larger"][k] = goal >= term(block.error[k])
        rows.add_to(
            block,
            entries_follow="entries follow each other",
            errors_are_bounded="no operand has a larger error than its table",
            memory_suffices="entries of all tables fit into the memory",
            none_is_larger="no error exceeds the largest",
        )
        block.objective = pyo.Expression(expr=goal.expression)

    def start(self, block: pyo.Block, instance: TableInstance, solution: LookupTables) -> None:
        """Set ``chosen``; the rest follows."""
        for variable in block.chosen.values():
            variable.set_value(0)
        for k, (table, starts) in enumerate(zip(instance.tables, solution.starts, strict=True)):
            for a, b in zip(starts, (*starts[1:], table.high + 1), strict=True):
                block.chosen[k, a, b].set_value(1)

    def read(self, block: pyo.Block, instance: TableInstance) -> LookupTables:
        """The entries of every table.

        Raises
        ------
        SolverError
            If the arcs chosen are no path.
        """
        found = []
        ends = {(k, a): b for (k, a, b), variable in block.chosen.items() if (variable.value or 0.0) > 0.5}
        for k, table in enumerate(instance.tables):
            starts, place = [], table.low
            while place <= table.high:
                if (k, place) not in ends:
                    raise SolverError(f"'{instance.name}': no entry of table '{table.name}' begins at operand {place}")
                starts.append(place)
                place = ends[k, place]
            found.append(tuple(starts))
        return LookupTables(instance=instance.name, starts=tuple(found))

    def objective_value(self, instance: TableInstance, value: float) -> float:
        """Weighted error."""
        return value * error_unit(instance)


def error_unit(instance: TableInstance) -> float:
    """In what errors of the model are measured, a power of two.

    A sixteenth of the objective where each table has as many entries, all of the same length, as memory allows; where
    that is 0, of the largest error of tables with one entry.
    """
    single = [table.weight * float(_errors(table, [(table.low, table.high + 1)])[0]) for table in instance.tables]
    return unit_of(_even_error(instance), max(single), parts=_PARTS)


def _even_error(instance: TableInstance) -> float:
    """The objective of as many entries for each table, all of the same length, as memory allows."""
    most = max(1, instance.budget_bytes // sum(table.entry_bytes for table in instance.tables))
    even = [table.weight * float(_errors(table, _even(table, most)).max()) for table in instance.tables]
    return sum(even) if instance.goal == "sum" else max(even)


def _even(table: LookupFunction, most: int) -> list[tuple[int, int]]:
    """The number of entries of the same length is limited, those at the ends apart."""
    if table.entries == "ranges":
        cuts = np.unique(np.linspace(table.low, table.high + 1, min(most, table.operands) + 1).astype(int)).tolist()
        return list(pairwise(cuts))
    bits = next(b for b in count() if (table.high >> b) - (table.low >> b) < most)
    blocks = range(table.low >> bits, (table.high >> bits) + 1)
    return [(max(k << bits, table.low), min((k + 1) << bits, table.high + 1)) for k in blocks]


def _arcs(table: LookupFunction) -> list[tuple[int, int]]:
    """Operands of every possible entry: the first, and the one beyond the last."""
    if table.entries == "ranges":
        return [(a, b) for a in range(table.low, table.high + 1) for b in range(a + 1, table.high + 2)]
    found: dict[tuple[int, int], None] = {}
    bits, whole = 0, False
    while not whole:
        for block in range(table.low >> bits, (table.high >> bits) + 1):
            found[max(block << bits, table.low), min((block + 1) << bits, table.high + 1)] = None
        whole = table.low >> bits == table.high >> bits
        bits += 1
    return sorted(found)


def _errors(table: LookupFunction, arcs: Sequence[tuple[int, int]]) -> Any:
    """Error of every entry, not weighted."""
    own = [table.values[a - table.low : b - table.low] for a, b in arcs]
    least, most = (np.array([combined(each) for each in own]) for combined in (np.min, np.max))
    return best_values(least, most, table.relative, table.step)[1]
