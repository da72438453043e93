"""Eigenvalue bounds that hold in spite of rounding."""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_UNIT = 2.0**-53


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
        Proven: with :math:`B = M - \mathrm{taken}\, \mathbf{1}\mathbf{1}^\top/n` and the number s, the Cholesky
        factorisation of :math:`sI - B - cI` runs to its end in floating point, where c is more than all that rounding
        can do, so :math:`sI - B` is positive semidefinite (S. M. Rump, "Verification of positive definiteness", BIT
        Numerical Mathematics 46, 2006).
    """
    n = len(matrix)
    beside = matrix - taken / n
    scale = float(np.abs(beside).sum(axis=1).max()) + abs(taken)
    # Of forming the entries: each is the result of at most three roundings, and those of a row add up.
    formed = 4.0 * _UNIT * n * scale + error
    value = float(np.linalg.eigvalsh(beside)[-1])
    margin = 4.0 * _UNIT * n * max(scale, 1e-300)
    while True:
        candidate = value + margin
        shifted = candidate * np.eye(n) - beside
        gamma = (n + 2) * _UNIT / (1.0 - (n + 2) * _UNIT)
        c = 2.0 * gamma * float(np.abs(shifted.diagonal()).sum()) + formed
        try:
            np.linalg.cholesky(shifted - c * np.eye(n))
        except np.linalg.LinAlgError:
            margin *= 2.0
            continue
        return Fraction(candidate)
