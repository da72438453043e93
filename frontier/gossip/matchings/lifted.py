r"""The lifted relaxation of a box of probabilities, a semidefinite program solved by Clarabel.

    min s  subject to  s P − M ⪰ 0 beside the all-one vector,
    M = P − 2 L(y) + Σ_{e≠f} Y_ef (a_e·a_f) a_e a_fᵀ + 2 L(Z),
    [1 yᵀ; y Y] ⪰ 0,  l ≤ p ≤ u,  D p ≤ f,

with the part of each edge at either end of its box, :math:`y = y^1 + y^2`, :math:`Z^2 u (p - l) / (u - l) \ge (y^2)^2`
and :math:`Z^1 l (u - p) / (u - l) \ge (y^1)^2`, :math:`Z = Z^1 + Z^2`, :math:`Y_{ee} \le l Z^1 + u Z^2`. What it proves
is recalculated from its multipliers, see :mod:`~ddlopt.frontier.gossip.matchings.lifted_moments`.
"""

from typing import Any

import clarabel
import numpy as np
from scipy import sparse

from ddlopt.frontier.gossip.matchings.lifted_moments import lent_bound
from ddlopt.frontier.gossip.matchings.relaxed_newton import Relaxed
from ddlopt.models.gossip.matchings.instance import MatchingsInstance
from ddlopt.models.gossip.matchings.relaxed_moments import RelaxedMoment
from ddlopt.models.gossip.spectral.laplacians import Floats, Ints, on_edges

MOST_EDGES = 40
"""The program of forty edges takes two seconds, that of eighty would take a minute."""
_NARROW = 1e-6
"""A box of this width or less is taken as if it were as wide: it is exact but for that."""
_GAP = 1e-7
"""Of the solver: what it leaves is far below the gaps of a branch and bound."""
_SQRT2 = np.sqrt(2.0)


class LiftedProgram:
    """What the boxes of a graph have in common.

    Parameters
    ----------
    nodes : int
    ends : (m, 2) array
    """

    def __init__(self, nodes: int, ends: Ints) -> None:
        self.nodes, self.edges = nodes, len(ends)
        incidence = np.zeros((nodes, self.edges))
        incidence[ends[:, 0], np.arange(self.edges)] = 1.0
        incidence[ends[:, 1], np.arange(self.edges)] = -1.0
        self.axes = np.linalg.svd(np.ones((1, nodes)))[2][1:]
        self._triangle = _triangle(nodes - 1)
        rows, columns = self._triangle
        self._scale = np.where(rows == columns, 1.0, _SQRT2)
        self._first, self._second = np.triu_indices(self.edges, 1)
        meeting = (incidence.T @ incidence)[self._first, self._second]
        inside = self.axes @ incidence

        def products(one: Ints, other: Ints) -> Floats:
            found = inside[rows][:, one] * inside[columns][:, other]
            return self._scale[:, None] * (found + inside[rows][:, other] * inside[columns][:, one])

        every = np.arange(self.edges)
        self._single = sparse.csc_array(products(every, every) / 2.0)
        self._crossed = sparse.csc_array(products(self._first, self._second) * meeting)
        self._unit = np.where(rows == columns, 1.0, 0.0)

    def relaxed(self, box: RelaxedMoment) -> Relaxed | None:
        """The best point of a box and what is proven by its multipliers; None where the solver has no answer."""
        rows, offsets, cones, columns = self._program(box)
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.max_threads = False, 1
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _GAP
        cost = np.zeros(rows.shape[1])
        cost[-1] = 1.0
        empty = sparse.csc_array(rows.shape[1:] * 2)
        answer = clarabel.DefaultSolver(empty, cost, rows, offsets, cones, settings).solve()
        found, multipliers = np.array(answer.x), np.array(answer.z)
        if not (np.isfinite(found).all() and np.isfinite(multipliers).all()):
            return None
        count, limits = len(box.low), len(box.limits)
        point = np.clip(found[:count], box.low, box.high)
        prices = multipliers[:limits]
        kept = multipliers[limits + 2 * count :][: self.edges]
        start = len(multipliers) - (self.edges + 1) * (self.edges + 2) // 2
        inner = np.zeros((self.nodes - 1,) * 2)
        inner[self._triangle] = multipliers[start - len(self._unit) : start] / self._scale
        matrix = self.axes.T @ (inner + inner.T - np.diag(inner.diagonal())) @ self.axes
        # The prices of Y_ee are what the square of the mean keeps of its diagonal.
        lent = 2.0 * on_edges(matrix, box.ends) - kept
        bound = lent_bound(box, matrix, lent, point, prices)
        return Relaxed(point, columns @ found, max(bound, float(found[-1])), bound, matrix, lent)

    def _program(self, box: RelaxedMoment) -> tuple[Any, Floats, list[Any], Any]:
        """Rows, offsets and cones, and the rows of y; variables are p, y², Z², y¹, Z¹, Y and s."""
        edges, count, pairs = self.edges, len(box.low), len(self._first)
        low, high = box.low[box.owners], box.high[box.owners]
        wide = high - low > _NARROW
        two = np.flatnonzero(wide & (low > _NARROW))
        sizes = (count, edges, edges, len(two), len(two), pairs, edges, 1)
        places = np.concatenate([[0], np.cumsum(sizes)])

        def at(part: int, block: Any) -> Any:
            entries = sparse.coo_array(block)
            here = (entries.data, (entries.row, entries.col + places[part]))
            return sparse.csc_array(here, shape=(entries.shape[0], places[-1]))

        each, some = sparse.eye_array(edges), sparse.eye_array(len(two))
        owned = sparse.csr_array((np.ones(edges), (np.arange(edges), box.owners)), shape=(edges, count))
        spread = sparse.csc_array((np.ones(len(two)), (two, np.arange(len(two)))), shape=(edges, len(two)))
        every = sparse.eye_array(count)
        y = at(1, each) + at(3, spread)
        z = at(2, each) + at(4, spread)
        most = at(6, each) - at(2, sparse.diags_array(high)) - at(4, sparse.diags_array(low) @ spread)
        linear = [at(0, box.rows), at(0, -every), at(0, every), most]
        offsets = [box.limits, -box.low, box.high, np.zeros(edges)]
        cones = [clarabel.NonnegativeConeT(sum(block.shape[0] for block in linear))]

        def cone(total: Any, share: Any, offset: Floats, part: Any) -> None:
            # Z b >= y² as (Z + b, Z - b, 2 y)
            order = np.arange(3 * len(offset)).reshape(3, -1).T.ravel()
            linear.append(-sparse.vstack([total + share, total - share, 2.0 * part]).tocsr()[order])
            offsets.append(np.concatenate([offset, -offset, np.zeros(len(offset))])[order])
            cones.extend([clarabel.SecondOrderConeT(3)] * len(offset))

        width = np.where(wide, high - low, 1.0)
        slope = np.where(wide, high / width, 0.0)
        cone(at(2, each), at(0, sparse.diags_array(slope) @ owned), np.where(wide, -slope * low, high), at(1, each))
        if len(two):
            slope = (low / width)[two]
            share = at(0, -(sparse.diags_array(slope) @ owned[two]))
            cone(at(4, some), share, slope * high[two], at(3, some))
        linear.append(self._single @ (2.0 * z - 2.0 * y) + at(5, self._crossed) - at(7, self._unit[:, None]))
        offsets.append(-self._unit)
        cones.append(clarabel.PSDTriangleConeT(self.nodes - 1))
        linear.append(-_lifted(edges, (self._first, self._second), y, at(6, each), at(5, sparse.eye_array(pairs))))
        offsets.append(np.eye(1, (edges + 1) * (edges + 2) // 2).ravel())
        cones.append(clarabel.PSDTriangleConeT(edges + 1))
        return sparse.csc_matrix(sparse.vstack(linear)), np.concatenate(offsets), cones, y


def program_for(instance: MatchingsInstance) -> LiftedProgram | None:
    """The program of an instance; None where it has too many edges."""
    network = instance.network
    return LiftedProgram(network.nodes, network.ends) if len(network.edges) <= MOST_EDGES else None


def _triangle(size: int) -> tuple[Ints, Ints]:
    """Rows and columns of an upper triangle, column after column."""
    columns, rows = np.tril_indices(size)
    return rows, columns


def _lifted(edges: int, pairs: tuple[Ints, Ints], y: Any, squares: Any, products: Any) -> Any:
    """[1 yᵀ; y Y] but for the 1, as a triangle whose inner products are those of matrices."""

    def into(rows: Ints, columns: Ints, scale: float) -> Any:
        places = columns * (columns + 1) // 2 + rows
        shape = ((edges + 1) * (edges + 2) // 2, len(places))
        return sparse.csc_array((np.full(len(places), scale), (places, np.arange(len(places)))), shape=shape)

    every = np.arange(1, edges + 1)
    one = into(np.zeros(edges, dtype=np.int64), every, _SQRT2) @ y
    return one + into(every, every, 1.0) @ squares + into(pairs[0] + 1, pairs[1] + 1, _SQRT2) @ products
