r"""A primal-dual interior-point method for eigenvalues of weighted Laplacians.

    max t  subject to  C_k + σ_k L(E y) + τ_k t P ⪰ 0 for each block k, and  D y + f ≥ 0,

with :math:`L(w) = \sum_e w_e a_e a_e^\top`, :math:`P = I - \mathbf{1}\mathbf{1}^\top/n` and each :math:`C_k` a
combination of P and :math:`\mathbf{1}\mathbf{1}^\top/n`. Edges have rank one, so the matrix of the Newton system is
elementwise:

.. math:: H_{ef} = (a_e^\top X a_f)(a_f^\top S^{-1} a_e) .

That takes :math:`O(m^2)` for m edges beside the :math:`O(n^3 + m^3)` of the factorisations, where generic solvers treat
the m coefficient matrices as if they were dense.

The steps are those of Mehrotra's predictor and corrector with the direction of Helmberg, Kojima and Monteiro
(C. Helmberg, F. Rendl, R. Vanderbei, H. Wolkowicz, "An interior-point method for semidefinite programming", SIAM
Journal on Optimization 6, 1996; M. Todd, "Semidefinite optimization", Acta Numerica 10, 2001).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from ddlopt.models.gossip.spectral.laplacians import Floats, Ints, laplacian, on_edges
from ddlopt.solvers.gossip.spectral.kernels import add_products
from ddlopt.solvers.machine import memory_left_bytes

# Interior point methods take some 20 to 40; what it ends at is said, and bounds hold anyway.
_ROUNDS = 100
_OF_NODES = 12
"""Matrices over nodes of each block at a time: iterate, factors, inverse, and steps with what they are made from."""
_NEAR, _FAR = 0.9, 0.98
"""Parts of the way to the boundary that steps go, after bad and after good predictions."""


class Block(NamedTuple):
    """S = constant · P + J + sign · L(w) + slope · t P, with J the projection on the all-one vector."""

    constant: float
    sign: float
    slope: float


@dataclass(frozen=True)
class SpectralProgram:
    """See the module.

    Parameters
    ----------
    nodes : int
    ends : (m, 2) array
    mixing : (m, q) sparse array
        E: weights of edges from the variables.
    blocks : tuple of Block
    rows : (r, q) sparse array
        D.
    offsets : (r,) array
        f.
    start : (q,) array
        Variables that keep all rows strictly.
    start_t : float
        With which, at ``start``, all blocks are positive definite.
    """

    nodes: int
    ends: Ints
    mixing: sparse.csr_array
    blocks: tuple[Block, ...]
    rows: sparse.csr_array
    offsets: Floats
    start: Floats
    start_t: float


@dataclass
class Iterate:
    """Variables y and t, their slacks S and s, and multipliers X and x of blocks and rows."""

    y: Floats
    t: float
    slacks: list[Floats]
    row_slacks: Floats
    multipliers: list[Floats]
    row_multipliers: Floats


class _Step(NamedTuple):
    y: Floats
    t: float
    slacks: list[Floats]
    row_slacks: Floats
    multipliers: list[Floats]
    row_multipliers: Floats


class _TimeUpError(Exception):
    """The time is up in the midst of a round, of which nothing is left."""


def _never() -> bool:
    return False


def solve(
    program: SpectralProgram, stop: Callable[[Iterate], bool], expired: Callable[[], bool] = _never
) -> tuple[Iterate, int]:
    """Go on until ``stop`` says so or nothing moves any more.

    Parameters
    ----------
    program : SpectralProgram
    stop : callable
        Of an iterate, after each round.
    expired : callable
        Whether the time is up: asked between factorisations and products, as a round on thousands of nodes takes many
        seconds. That round is given up. So is the first where there is no memory for its matrices.

    Returns
    -------
    iterate : Iterate
    rounds : int
    """
    n, blocks = program.nodes, program.blocks
    slacks, row_slacks = _slacks(program, program.start, program.start_t)
    at = Iterate(
        program.start,
        program.start_t,
        slacks,
        row_slacks,
        [np.eye(n) / n for _ in blocks],
        np.full(len(row_slacks), 1.0 / max(1, len(row_slacks))),
    )
    for done in range(_ROUNDS):
        if stop(at):
            return at, done
        if done == 0 and _round_bytes(program) > (memory_left_bytes() or np.inf):
            return at, done
        try:
            moved = _round(program, at, expired)
        except (np.linalg.LinAlgError, _TimeUpError):
            return at, done
        if not moved:
            return at, done
    return at, _ROUNDS


def _slacks(program: SpectralProgram, y: Floats, t: float) -> tuple[list[Floats], Floats]:
    n = program.nodes
    weighted = laplacian(n, program.ends, program.mixing @ y)
    slacks = []
    for block in program.blocks:
        inner = block.constant + block.slope * t
        matrix = block.sign * weighted + (1.0 - inner) / n
        matrix[np.diag_indices(n)] += inner
        slacks.append(matrix)
    return slacks, program.rows @ y + program.offsets


def _round_bytes(program: SpectralProgram) -> float:
    """What the matrices of a round take."""
    edges, variables = program.mixing.shape
    numbers = _OF_NODES * len(program.blocks) * program.nodes**2 + 2 * edges**2 + 2 * (variables + 1) ** 2
    return 8.0 * float(numbers)


class _System:
    """The Newton system at an iterate."""

    def __init__(self, program: SpectralProgram, at: Iterate, expired: Callable[[], bool] = _never) -> None:
        self.program, self.at, self._expired = program, at, expired
        n, ends = program.nodes, program.ends
        self.factors: list[Floats] = [np.linalg.cholesky(slack).astype(np.float64, copy=False) for slack in at.slacks]
        self.inverses = [_inverse(factor) for factor in self.factors]
        self.look()
        edges = np.zeros((len(ends), len(ends)))
        mixed, corner = np.zeros(len(ends)), 0.0
        for block, x, inverse in zip(program.blocks, at.multipliers, self.inverses, strict=True):
            self.look()
            add_products(edges, x, inverse, ends)
            self.look()
            # P S⁻¹ = S⁻¹ − J, as S keeps the all-one vector
            product = x @ (inverse - 1.0 / n)
            mixed += block.sign * block.slope * on_edges(product + product.T, ends) / 2.0
            corner += block.slope**2 * (np.trace(product) - product.sum() / n)
        self.look()
        self._factor = self._factored(edges, mixed, corner)
        self.look()
        dimension = n * len(program.blocks) + len(at.row_slacks)
        inner = sum(float((x * s).sum()) for x, s in zip(at.multipliers, at.slacks, strict=True))
        self.gap = (inner + float(at.row_multipliers @ at.row_slacks)) / dimension
        self.dimension = dimension
        self.missing_y, self.missing_t = self._image(at.multipliers, at.row_multipliers)
        self.missing_t += 1.0

    def look(self) -> None:
        """Give the round up if the time is up."""
        if self._expired():
            raise _TimeUpError

    def _factored(self, edges: Floats, mixed: Floats, corner: float) -> tuple[Floats, bool]:
        program, at = self.program, self.at
        mixing, rows = program.mixing, program.rows
        ratio = at.row_multipliers / at.row_slacks
        whole = np.empty((mixing.shape[1] + 1,) * 2)
        whole[:-1, :-1] = edges if _is_identity(mixing) else mixing.T @ (mixing.T @ edges).T
        if len(ratio):
            added = sparse.coo_array(rows.T @ sparse.diags_array(ratio) @ rows)
            whole[added.coords] += added.data
        whole[:-1, -1] = whole[-1, :-1] = mixing.T @ mixed
        whole[-1, -1] = corner
        # A matrix that is singular but for rounding has a Cholesky factor all the same.
        whole[np.diag_indices(len(whole))] *= 1.0 + 1e-15
        factor: tuple[Floats, bool] = cho_factor(whole, overwrite_a=True, check_finite=False)
        return factor

    def _image(self, multipliers: list[Floats], row_multipliers: Floats) -> tuple[Floats, float]:
        """What multipliers weigh y and t with."""
        program = self.program
        edges, t = np.zeros(len(program.ends)), 0.0
        for block, x in zip(program.blocks, multipliers, strict=True):
            edges += block.sign * on_edges(x, program.ends)
            t += block.slope * float(np.trace(x) - x.sum() / program.nodes)
        return program.mixing.T @ edges + program.rows.T @ row_multipliers, t

    def step(self, target: float, predicted: _Step | None) -> _Step:
        """The direction to complementarity ``target``, with the second-order terms of what was ``predicted``."""
        program, at, n = self.program, self.at, self.program.nodes
        wanted = [target * inverse - x for inverse, x in zip(self.inverses, at.multipliers, strict=True)]
        row_wanted = target / at.row_slacks - at.row_multipliers
        if predicted is not None:
            for place, inverse in enumerate(self.inverses):
                self.look()
                wanted[place] -= _symmetric(predicted.multipliers[place] @ predicted.slacks[place] @ inverse)
            row_wanted = row_wanted - predicted.row_multipliers * predicted.row_slacks / at.row_slacks
        y, t = self._image(wanted, row_wanted)
        move = cho_solve(self._factor, np.append(y + self.missing_y, t + self.missing_t), check_finite=False)
        dy, dt = move[:-1], float(move[-1])
        weighted = laplacian(n, program.ends, program.mixing @ dy)
        slacks, multipliers = [], []
        for place, (block, inverse) in enumerate(zip(program.blocks, self.inverses, strict=True)):
            self.look()
            inner = block.slope * dt
            change = block.sign * weighted - inner / n
            change[np.diag_indices(n)] += inner
            slacks.append(change)
            multipliers.append(wanted[place] - _symmetric(at.multipliers[place] @ change @ inverse))
        rows = program.rows @ dy
        return _Step(dy, dt, slacks, rows, multipliers, row_wanted - at.row_multipliers / at.row_slacks * rows)


def _round(program: SpectralProgram, at: Iterate, expired: Callable[[], bool]) -> bool:
    """Predict, correct, and move; False if there is no way on."""
    system = _System(program, at, expired)
    factors: list[Floats] = [np.linalg.cholesky(x).astype(np.float64, copy=False) for x in at.multipliers]
    predicted = system.step(0.0, None)
    far, far_dual = _lengths(system, at, factors, predicted, _FAR)
    reached = float((at.row_multipliers + far_dual * predicted.row_multipliers)
                    @ (at.row_slacks + far * predicted.row_slacks))  # fmt: skip
    for x, dx, s, ds in zip(at.multipliers, predicted.multipliers, at.slacks, predicted.slacks, strict=True):
        reached += float(((x + far_dual * dx) * (s + far * ds)).sum())
    left = max(0.0, reached / system.dimension / system.gap)
    # Aim further where the prediction went far, and stay away from the boundary where it did not.
    power = max(1.0, 3.0 * min(far, far_dual) ** 2)
    # Never aim further at once: the step would end at the boundary.
    step = system.step(max(1e-6, min(1.0, left**power)) * system.gap, predicted)
    part = _NEAR + (_FAR - _NEAR) * min(far, far_dual)
    far, far_dual = _lengths(system, at, factors, step, part)
    # Nothing moves any more.
    if max(far, far_dual) < 1e-8:
        return False
    at.y, at.t = at.y + far * step.y, at.t + far * step.t
    at.slacks, at.row_slacks = _slacks(program, at.y, at.t)
    at.multipliers = [x + far_dual * dx for x, dx in zip(at.multipliers, step.multipliers, strict=True)]
    at.row_multipliers = at.row_multipliers + far_dual * step.row_multipliers
    return True


def _lengths(system: _System, at: Iterate, factors: list[Floats], step: _Step, part: float) -> tuple[float, float]:
    """How far slacks, and multipliers, go: a part of the way to the boundary."""

    def length(factor: Floats, change: Floats) -> float:
        system.look()
        return _length(factor, change)

    own = min(map(length, system.factors, step.slacks))
    own = min(own, _row_length(at.row_slacks, step.row_slacks))
    dual = min(map(length, factors, step.multipliers))
    dual = min(dual, _row_length(at.row_multipliers, step.row_multipliers))
    return min(1.0, part * own), min(1.0, part * dual)


def _row_length(values: Floats, change: Floats) -> float:
    falling = change < 0
    return float((values[falling] / -change[falling]).min()) if falling.any() else np.inf


def _length(factor: Floats, change: Floats) -> float:
    """The largest a with F Fᵀ + a · change positive semidefinite."""
    half = solve_triangular(factor, change, lower=True, check_finite=False)
    whole = solve_triangular(factor, half.T, lower=True, check_finite=False)
    least = float(np.linalg.eigvalsh(_symmetric(whole))[0])
    return np.inf if least >= 0 else -1.0 / least


def _is_identity(matrix: sparse.csr_array) -> bool:
    rows, columns = matrix.shape
    return rows == columns == matrix.nnz and bool((matrix.diagonal() == 1.0).all())


def _inverse(factor: Floats) -> Floats:
    found: Floats = cho_solve((factor, True), np.eye(len(factor)), check_finite=False)
    return _symmetric(found)


def _symmetric(matrix: Floats) -> Floats:
    found: Floats = (matrix + matrix.T) / 2.0
    return found
