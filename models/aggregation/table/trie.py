"""Aligned blocks of operands, the nodes of a binary trie, and the staircase of errors of a table of prefixes.

A limit of the error asks for a split of exactly those blocks whose errors are above it, and no block has a smaller
error than those within. So the errors of all blocks, sorted, are the staircase: to split the worst is optimal.
"""

import numpy as np
import numpy.typing as npt

from ddlopt.models.aggregation.table.instance import LookupFunction
from ddlopt.models.aggregation.table.values import Floats, best_values


def block_errors(table: LookupFunction) -> list[Floats]:
    """Errors of all aligned blocks with operands: of each power of two, from 1 to one that covers all."""
    least = most = table.values
    levels = [best_values(least, most, table.relative, table.step)[1]]
    bits = 0
    while table.low >> bits != table.high >> bits:
        ahead, behind = (table.low >> bits) & 1, 1 - ((table.high >> bits) & 1)
        # Blocks of operands that do not exist have no values: twins of their neighbours do no harm.
        least, most = (
            combined(np.pad(each, (ahead, behind), mode="edge").reshape(-1, 2), axis=1)
            for combined, each in ((np.min, least), (np.max, most))
        )
        bits += 1
        below = np.pad(levels[-1], (ahead, behind), mode="edge").reshape(-1, 2).max(axis=1)
        errors = best_values(least, most, table.relative, table.step)[1]
        levels.append(np.maximum(errors, below))
    return levels


def split_errors(table: LookupFunction, levels: list[Floats]) -> Floats:
    """Errors of all blocks with operands in both halves, descending: with n entries, the n-th is the least error.

    Where there is no n-th, it is that of a table with an entry for every operand.
    """
    forks = [errors[_forks(table, bits)] for bits, errors in enumerate(levels) if bits]
    return np.sort(np.concatenate([np.empty(0), *forks]))[::-1]


def _forks(table: LookupFunction, bits: int) -> npt.NDArray[np.bool_]:
    """Of the blocks of ``2 ** bits`` operands: which have operands in both halves."""
    blocks = np.arange(table.low >> bits, (table.high >> bits) + 1)
    left, right = 2 * blocks, 2 * blocks + 1
    return (left >= table.low >> (bits - 1)) & (right <= table.high >> (bits - 1))
