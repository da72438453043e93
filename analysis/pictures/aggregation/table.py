"""Pictures of lookup tables: each function with the steps of its table, and below it the error of every operand."""

from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from ddlopt.models.aggregation import LookupTables, TableInstance
from ddlopt.models.aggregation.table.instance import outputs_of

_FUNCTION, _TABLE, _LIMIT = "#7f7f7f", "#1f6fb4", "#d95f02"
_POINTS = 4000
"""Operands of a table that are drawn, at most."""


def draw(axes: Any, instance: TableInstance, solution: LookupTables) -> None:
    """A column a table: above, function and table; below, the weighted error, and its largest value."""
    axes.set_axis_off()
    count = len(instance.tables)
    width, space = 1.0 / count, 0.3 / count
    for place, table in enumerate(instance.tables):
        left = place * width + 0.5 * space
        above = axes.inset_axes((left, 0.58, width - space, 0.34))
        below = axes.inset_axes((left, 0.1, width - space, 0.34), sharex=above)
        found = outputs_of(instance, solution, place)
        operand = np.arange(table.low, table.high + 1) / 2.0**table.fraction_bits
        error = table.weight * (found - table.values) / (np.abs(table.values) if table.relative else 1.0)
        shown = np.unique(np.linspace(0, table.operands - 1, min(table.operands, _POINTS)).astype(int))
        above.plot(operand[shown], table.values[shown], color=_FUNCTION, linewidth=2.5, alpha=0.6, label="function")
        above.step(operand[shown], found[shown], where="post", color=_TABLE, linewidth=0.9, label="table")
        below.plot(operand[shown], error[shown], color=_TABLE, linewidth=0.6)
        largest = float(np.abs(error).max())
        for level in (-largest, largest):
            below.axhline(level, color=_LIMIT, linewidth=0.9)
        entries = len(solution.starts[place])
        above.set_title(f"{table.name}\n{entries} entries", fontsize=7)
        below.set_title(f"error ≤ {largest:.2g}", fontsize=7)
        below.set_xlabel("operand", fontsize=7)
        above.tick_params(labelsize=6, labelbottom=False)
        below.tick_params(labelsize=6)
        below.ticklabel_format(axis="y", scilimits=(-2, 3))
        below.yaxis.offsetText.set_fontsize(6)
        below.xaxis.set_major_locator(MaxNLocator(3))
        if place == 0:
            above.legend(fontsize=6, frameon=False, loc="lower right", handlelength=1)
