"""Eigenvalue bounds that hold in spite of rounding."""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ddlopt.models.tolerances import TINY

Floats = npt.NDArray[np.float64]

# Rounding of one operation, relative: half a unit in the last place of a double.
_UNIT = 2.0**-53
_DIGITS = 32
"""Binary digits of a result."""


def largest_below(matrix: Floats, taken: float, error: float = 0.0) -> Fraction:
    r"""A number that no eigenvalue of a symmetric matrix exceeds, that of the all-one vector apart.

    Parameters
    ----------
    matrix : (n, n) array
        Symmetric; the all-one vector is an eigenvector up to the rounding of the diagonal.
    taken : float
        What is taken off the eigenvalue of that vector, so that it is not the largest.
    error : float
        How far, in the spectral norm, the matrix may be from the one that is meant.

    Returns
    -------
    Fraction
        Relatively within some :math:`10^{-10}` of the largest, and proven: with
        :math:`B = M - \mathrm{taken}\, \mathbf{1}\mathbf{1}^\top/n` and the number s, the Cholesky factorisation of
        :math:`sI - B - cI` runs to its end in floating point, where c is more than all that rounding can do, so
        :math:`sI - B` is positive semidefinite (S. M. Rump, "Verification of positive definiteness", BIT Numerical
        Mathematics 46, 2006).
    """
    n = len(matrix)
    beside = matrix - taken / n
    scale = float(np.abs(beside).sum(axis=1).max()) + abs(taken)
    # Of forming the entries: each is the result of at most three roundings, and those of a row add up.
    formed = 4.0 * _UNIT * n * scale + error
    value = float(np.linalg.eigvalsh(beside)[-1])
    # Whole multiples of a power of two, so that other libraries of linear algebra end at the same number.
    grid = 2.0 ** (math.frexp(max(abs(value), 2.0**-28 * scale, TINY))[1] - _DIGITS)
    steps = 1
    while True:
        candidate = (math.floor(value / grid) + steps) * grid
        shifted = candidate * np.eye(n) - beside
        gamma = (n + 2) * _UNIT / (1.0 - (n + 2) * _UNIT)
        c = 1.1 * gamma * float(np.abs(shifted.diagonal()).sum()) + formed
        try:
            np.linalg.cholesky(shifted - c * np.eye(n))
        except np.linalg.LinAlgError:
            steps *= 2
            continue
        return Fraction(candidate)
