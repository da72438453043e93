r"""What whole vectors prove of a region, without any rounding.

**Why.** Let :math:`X = \sum_k v_k v_k^\top` for any vectors, so that nobody need prove that it is positive
semidefinite, :math:`x_e = a_e^\top X a_e` and :math:`P = I - J`. Then
:math:`\rho \operatorname{tr} P X \ge \langle X, \mathbb{E}[W^2] - J \rangle`, which has three parts; let
:math:`y_e = p_e w_e`.

* *Mean*: :math:`\operatorname{tr} P X - 2 \sum_e x_e y_e`.
* *Its square*: :math:`\langle X, L(y)^2 \rangle = \sum_k |L(y) v_k|^2 \ge \sum_k 2 z_k^\top L(y) v_k - |z_k|^2` for any
  z; here :math:`z_k = L(\eta) v_k` with the *flows* η of the proof. So edge e has the slope
  :math:`2 \sum_k (a_e^\top z_k) (a_e^\top v_k)`.
* *Variance*: :math:`2 p (1 - p) w^2 \ge 2 (2 \theta p w - \theta^2 \phi)` for any θ and
  :math:`\phi \ge p / (1 - p)`. Where :math:`l \le p \le u < 1` the secant
  :math:`\phi = (p - l u) / ((1 - l) (1 - u))` is such a number.

With θ for which no :math:`y_e` has a slope any more, what is left is linear in the probabilities. Where u = 1 there is
no θ; a slope s costs :math:`|s|` then, as :math:`|y_e| \le 1` wherever :math:`\rho \le 1`:
:math:`y_e^2 \le p_e w_e^2 = \mathbb{E} W_{ij}^2 \le \mathbb{E}[W^2]_{ii} \le 1`.

Where a single matching is active, :math:`\mathbb{E}[W^2] - J \succeq P - \tfrac12 L(p)`, which is linear at once.

Linear functions are at least what prices :math:`\pi \ge 0` of rows :math:`D p \le f` and the box say:
:math:`c^\top p \ge \sum_j \min_{l_j \le p_j \le u_j} (c + D^\top \pi)_j p_j - f^\top \pi`. Without vectors the same
with c = 0 proves that a region is empty, if it is above 0.
"""

from collections.abc import Sequence
from fractions import Fraction

from ddlopt.models.errors import RefutedError
from ddlopt.models.gossip.matchings.certificate.regions import Polytope, Regions

FLOW_BITS, PRICE_BITS = 20, 24
"""After the binary point of flows, and of prices as parts of the trace: what is lost by rounding is far below a gap."""

Vectors = Sequence[Sequence[int]]
Linear = tuple[Fraction, list[Fraction]]


def leaf_bound(
    regions: Regions, polytope: Polytope, vectors: Vectors, flows: Sequence[int], prices: Sequence[int]
) -> Fraction | None:
    """What is proven of every plan of a region, within 0..1; None if that the region is empty.

    Parameters
    ----------
    regions : Regions
    polytope : Polytope
        Of the region.
    vectors : sequence of (n,) int
        In any unit.
    flows : (m,) int
        η in units of 2^-``FLOW_BITS``; none where a single matching is active.
    prices : (r,) int
        π in units of 2^-``PRICE_BITS`` of the trace; in any unit where there are no vectors.

    Raises
    ------
    RefutedError
        If numbers are missing, a price is below 0, or nothing is proven.
    """
    n, edges = regions.instance.size, len(regions.edges)
    if any(len(each) != n for each in vectors) or len(vectors) > n:
        raise RefutedError(f"the vectors of a leaf have not {n} entries each, or are more than {n}")
    if len(flows) != (0 if regions.single or not vectors else edges):
        raise RefutedError(f"a leaf has {len(flows)} flows; there are {edges} edges")
    if len(prices) != len(polytope.rows) or min(prices, default=0) < 0:
        raise RefutedError(f"the prices of a leaf are not {len(polytope.rows)} numbers of 0 or more")
    if not vectors:
        if _least(polytope, [Fraction(0)] * len(polytope.low), prices, Fraction(1)) <= 0:
            raise RefutedError("the prices of a leaf do not show that its region is empty")
        return None
    trace, (constant, slopes) = linear_part(regions, polytope, vectors, flows)
    if trace <= 0:
        raise RefutedError("the vectors of a leaf are multiples of the all-one vector")
    value = trace + constant + _least(polytope, slopes, prices, trace / 2**PRICE_BITS)
    return min(Fraction(1), max(Fraction(0), value / trace))


def linear_part(
    regions: Regions, polytope: Polytope, vectors: Vectors, flows: Sequence[int]
) -> tuple[Fraction, Linear]:
    """The trace, and what is left to be made least: a constant, and the slope of each probability."""
    n = regions.instance.size
    trace = sum((Fraction(n * sum(v * v for v in each) - sum(each) ** 2, n) for each in vectors), Fraction(0))
    return trace, _single(regions, polytope, vectors) if regions.single else _of(regions, polytope, vectors, flows)


def _least(polytope: Polytope, slopes: list[Fraction], prices: Sequence[int], unit: Fraction) -> Fraction:
    """What a linear function is at least."""
    found, left = Fraction(0), list(slopes)
    for price, (entries, limit) in zip(prices, polytope.rows, strict=True):
        if price:
            found -= price * unit * limit
            for variable, entry in entries.items():
                left[variable] += price * unit * entry
    for slope, low, high in zip(left, polytope.low, polytope.high, strict=True):
        found += slope * (low if slope > 0 else high)
    return found


def _single(regions: Regions, polytope: Polytope, vectors: Vectors) -> Linear:
    slopes = [Fraction(0)] * len(polytope.low)
    for (i, j), owner in zip(regions.edges, polytope.owners, strict=True):
        slopes[owner] -= Fraction(sum((v[i] - v[j]) ** 2 for v in vectors), 2)
    return Fraction(0), slopes


def _of(regions: Regions, polytope: Polytope, vectors: Vectors, flows: Sequence[int]) -> Linear:
    """Constant and slopes by probabilities, where matchings are independent."""
    pushed = [[0] * regions.instance.size for _ in vectors]
    for (i, j), flow in zip(regions.edges, flows, strict=True):
        for vector, into in zip(vectors, pushed, strict=True):
            moved = flow * (vector[i] - vector[j])
            into[i] += moved
            into[j] -= moved
    constant = -Fraction(sum(value * value for into in pushed for value in into), 4**FLOW_BITS)
    slopes = [Fraction(0)] * len(polytope.low)
    for (i, j), owner in zip(regions.edges, polytope.owners, strict=True):
        own = sum((v[i] - v[j]) ** 2 for v in vectors)
        if not own:
            continue  # a_e is orthogonal to all vectors, so that nothing depends on the edge
        met = sum((z[i] - z[j]) * (v[i] - v[j]) for v, z in zip(vectors, pushed, strict=True))
        left = own - Fraction(met, 2**FLOW_BITS)
        low, high = polytope.low[owner], polytope.high[owner]
        if high >= 1:
            constant -= 2 * abs(left)
            continue
        # θ = left / (2 own)
        curve = left * left / (2 * own * (1 - low) * (1 - high))
        constant += curve * low * high
        slopes[owner] -= curve
    return constant, slopes
