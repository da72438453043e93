"""Bounds for the problem ``circulant`` that need no solver."""

from math import comb, cos, inf, pi

from ddlopt.models.gossip.circulant.instance import CirculantInstance
from ddlopt.models.tolerances import ROUNDING

_HERMITE = (1.0, 2 / 3**0.5, 2 ** (1 / 3), 2**0.5, 8 ** (1 / 5), (64 / 3) ** (1 / 6), 64 ** (1 / 7), 2.0)
"""Hermite's constants of dimensions 1..8."""
_ABOVE = 1.0 + ROUNDING


def circulant_bound(instance: CirculantInstance) -> float:
    r"""What no circulant graph of the degree is better than.

    A graph has r generators with two links, and perhaps :math:`n/2` with one; each of the two cases gets a bound.

    *Gap.* (i) Eigenvalues other than 0 add up to n times the degree, so :math:`\lambda_2 \le n d / (n-1)`. (ii) With
    one generator a connected graph is the cycle, :math:`\lambda_2 = 2 - 2 \cos(2 \pi / n)`. (iii) The lattice of all
    :math:`k(g_1, …, g_r) + n Z^r` has determinant :math:`n^{r-1}` if the
    graph is connected; its shortest vector v has :math:`|v|^2 \le \gamma_r n^{2(r-1)/r}` with Hermite's constant
    :math:`\gamma_r`, and as :math:`2 - 2\cos x \le x^2`, :math:`\lambda_2 \le 4 \pi^2 \gamma_r n^{-2/r}` where that
    makes :math:`|v| < n`. The generator n/2 adds nothing to eigenvalues with even k: with it, (ii) and (iii) hold with
    n/2 in place of n. Alone it joins pairs of workers and no more.

    *Averaging.* After h rounds a worker's value has reached no more than the
    :math:`b_r(h) = \sum_i 2^i \binom{r}{i} \binom{h}{i}` sums of h generators (with n/2,
    :math:`b_r(h) + b_r(h-1)`), as the group is abelian, so
    :math:`\rho \ge ((n/b - 1)/(n - 1))^{1/2h}` as for problem ``weights``.

    References
    ----------
    J. H. Conway, N. J. A. Sloane, Sphere Packings, Lattices and Groups, table 1.2, for Hermite's constants. The bounds
    are put together here.
    """
    n, degree = instance.nodes, instance.degree
    cases = []
    if n % 2 == 0 and degree % 2:
        cases.append(((degree - 1) // 2, True))  # one link more than without: no other case is needed
    else:
        cases.append((min(degree // 2, (n - 1) // 2), False))
        if n % 2 == 0 and degree >= 4:
            cases.append((degree // 2 - 1, True))
    if instance.goal == "gap":
        return max(_gap(n, r, half) for r, half in cases)
    return min(_factor(n, r, half) for r, half in cases)


def _gap(n: int, r: int, half: bool) -> float:
    """With r generators of two links, at least one, and perhaps n/2."""
    found = n * (2 * r + half) / (n - 1)
    within = n // 2 if half else n
    if within >= 3:
        found = min(found, _small(within, r))
    return found * _ABOVE


def _small(n: int, r: int) -> float:
    """An eigenvalue that r generators with two links cannot keep above this, in a connected graph of n workers."""
    if r == 1:
        return 2.0 - 2.0 * cos(2.0 * pi / n)
    if r <= len(_HERMITE) and _HERMITE[r - 1] < n ** (2.0 / r):
        return float(4.0 * pi**2 * _HERMITE[r - 1] * n ** (-2.0 / r))
    return inf


def _factor(n: int, r: int, half: bool) -> float:
    best = 0.0
    for rounds in range(1, n):
        reached = _ball(r, rounds) + (_ball(r, rounds - 1) if half else 0)
        if reached >= n:
            break
        best = max(best, ((n / reached - 1.0) / (n - 1.0)) ** (0.5 / rounds))
    return best / _ABOVE


def _ball(r: int, rounds: int) -> int:
    return sum(2**i * comb(r, i) * comb(rounds, i) for i in range(min(r, rounds) + 1))
