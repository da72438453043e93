"""What follows from loads alone: how many heavy blocks an accelerator must have, and how many it can have."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.tolerances import FEASIBILITY_TOL

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Crowd(NamedTuple):
    """Blocks of which some accelerator has at least ``least``, which take ``load_s`` or more."""

    blocks: Ints
    least: int
    load_s: float


def crowd_of(times_s: Floats, accelerators: int) -> Crowd | None:
    """By the pigeonhole principle, the crowd with the largest load; None if there are too few blocks.

    Of the k m + 1 largest of all blocks some accelerator has m + 1; that takes no less than the m + 1 smallest of them.

    Parameters
    ----------
    times_s : (n,) array
        Of the blocks that must be on one of the ``accelerators``; 0 for others.
    """
    order = np.argsort(-times_s, kind="stable")
    sorted_s = times_s[order]
    best = None
    for count in range(1, (int(np.count_nonzero(times_s)) - 1) // max(1, accelerators) + 1):
        taken = accelerators * count + 1
        load_s = float(sorted_s[taken - 1 - count : taken].sum())
        if best is None or load_s > best.load_s:
            best = Crowd(order[:taken], count + 1, load_s)
    return best


def packing_rows(sizes: Floats, most: int) -> list[tuple[Floats, float]]:
    r"""Rows of coefficients and right sides that hold for all blocks which fit together into 1.

    Of blocks larger than 1 / (m + 1) there are at most m; and with the dual feasible functions
    :math:`u_q(x) = \lfloor (q + 1) x \rfloor / q`, which take no more than 1 together wherever sizes do (at whole
    numbers (q + 1) x, where u would be x, sizes are rounded down), q up to ``most``.
    """
    found: dict[tuple[float, ...], tuple[Floats, float]] = {}
    for size in np.unique(sizes[sizes > 1 / (most + 1)]).tolist():
        count = int((1 + FEASIBILITY_TOL) / size)
        if count:
            row = np.where(sizes >= size * (1 - FEASIBILITY_TOL), 1.0, 0.0)
            found.setdefault(tuple((row / count).tolist()), (row, float(count)))
    for q in range(1, most + 1):
        row = np.floor((q + 1) * sizes * (1 - FEASIBILITY_TOL))
        if row.any():
            found.setdefault(tuple((row / q).round(9).tolist()), (row, float(q)))
    return list(found.values())


def rare_first(times_s: Floats) -> Ints:
    """Blocks by their time, of which those that are there once come before those that have many equals."""
    _, group, counts = np.unique(times_s.round(12), return_inverse=True, return_counts=True)
    return np.argsort(-times_s / counts[group], kind="stable")
