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

The square may lend to the variance, which is worth nothing where u = 1: let :math:`d_e \le 2 x_e` be such that
:math:`\langle X, L(y)^2 \rangle - \sum_e d_e y_e^2` is positive semidefinite as a quadratic form of y, which is decided
by elimination in whole numbers. It is above its tangent at η then, as the square was, and what is left of the variance
is :math:`(2 x_e / p_e - \delta_e) y_e^2` with :math:`\delta = 2 x - d`, for which the secant of
:math:`p / (2 x - \delta p)` does as φ did: :math:`(2 x p - \delta l u) / ((2 x - \delta l) (2 x - \delta u))`. With
d = 0 that is what is above. The variance may lend to the square, too, :math:`d < 0`, as long as
:math:`2 x \ge \delta u`.

With θ for which no :math:`y_e` has a slope any more, what is left is linear in the probabilities. Where
:math:`2 x = \delta u`, as u = 1 and d = 0, there is no θ; a slope s costs :math:`|s|` then, as
:math:`|y_e| \le 1` wherever :math:`\rho \le 1`:
:math:`y_e^2 \le p_e w_e^2 = \mathbb{E} W_{ij}^2 \le \mathbb{E}[W^2]_{ii} \le 1`.

Where a single matching is active, :math:`\mathbb{E}[W^2] - J \succeq P - \tfrac12 L(p)`, which is linear at once.

Linear functions are at least what prices :math:`\pi \ge 0` of rows :math:`D p \le f` and the box say:
:math:`c^\top p \ge \sum_j \min_{l_j \le p_j \le u_j} (c + D^\top \pi)_j p_j - f^\top \pi`. Without vectors the same
with c = 0 proves that a region is empty, if it is above 0.
"""

from collections.abc import Sequence
from fractions import Fraction

from ddlopt.certificates.gossip.matchings.regions import Polytope, Regions
from ddlopt.models.errors import RefutedError

FLOW_BITS, PRICE_BITS = 20, 24
"""After the binary point of flows, and of prices as parts of the trace: what is lost by rounding is far below a gap."""

Vectors = Sequence[Sequence[int]]
Linear = tuple[Fraction, list[Fraction]]


def leaf_bound(
    regions: Regions,
    polytope: Polytope,
    vectors: Vectors,
    flows: Sequence[int],
    prices: Sequence[int],
    lent: Sequence[int] = (),
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
    lent : (m,) int, optional
        d in the unit of X; nothing is lent by itself.

    Raises
    ------
    RefutedError
        If numbers are missing, a price is below 0, more is lent than there is, or nothing is proven.
    """
    n, edges = regions.instance.size, len(regions.edges)
    if any(len(each) != n for each in vectors) or len(vectors) > n:
        raise RefutedError(f"the vectors of a leaf have not {n} entries each, or are more than {n}")
    if len(flows) != (0 if regions.single or not vectors else edges):
        raise RefutedError(f"a leaf has {len(flows)} flows; there are {edges} edges")
    if len(prices) != len(polytope.rows) or min(prices, default=0) < 0:
        raise RefutedError(f"the prices of a leaf are not {len(polytope.rows)} numbers of 0 or more")
    if lent and len(lent) != len(flows):
        raise RefutedError(f"a leaf lends for {len(lent)} edges; it has flows of {len(flows)}")
    if not vectors:
        if _least(polytope, [Fraction(0)] * len(polytope.low), prices, Fraction(1)) <= 0:
            raise RefutedError("the prices of a leaf do not show that its region is empty")
        return None
    trace, (constant, slopes) = linear_part(regions, polytope, vectors, flows, lent)
    if trace <= 0:
        raise RefutedError("the vectors of a leaf are multiples of the all-one vector")
    value = trace + constant + _least(polytope, slopes, prices, trace / 2**PRICE_BITS)
    return min(Fraction(1), max(Fraction(0), value / trace))


def linear_part(
    regions: Regions, polytope: Polytope, vectors: Vectors, flows: Sequence[int], lent: Sequence[int] = ()
) -> tuple[Fraction, Linear]:
    """The trace, and what is left to be made least: a constant, and the slope of each probability."""
    n = regions.instance.size
    trace = sum((Fraction(n * sum(v * v for v in each) - sum(each) ** 2, n) for each in vectors), Fraction(0))
    if regions.single:
        return trace, _single(regions, polytope, vectors)
    if any(lent) and not is_lendable(regions, vectors, lent):
        raise RefutedError("a leaf lends more than the square of the mean has")
    return trace, _of(regions, polytope, vectors, flows, lent or [0] * len(flows))


def is_lendable(regions: Regions, vectors: Vectors, lent: Sequence[int]) -> bool:
    r"""Whether :math:`d \\le 2 x`, and the square of the mean less d is positive semidefinite."""
    changes = [[v[i] - v[j] for v in vectors] for i, j in regions.edges]
    form = [[0] * len(changes) for _ in changes]
    for e, (own, (i, j)) in enumerate(zip(changes, regions.edges, strict=True)):
        square = sum(value * value for value in own)
        if lent[e] > 2 * square:
            return False
        form[e][e] = 2 * square - lent[e]
        for f in regions.adjacent[e]:
            # a_e and a_f have one node in common.
            sign = 1 if regions.edges[f][0] == i or regions.edges[f][1] == j else -1
            form[e][f] = sign * sum(a * b for a, b in zip(own, changes[f], strict=True))
    return is_semidefinite(form)


def is_semidefinite(form: list[list[int]]) -> bool:
    """Whether a symmetric matrix is positive semidefinite, by elimination without fractions (E. H. Bareiss 1968)."""
    last = 1
    for k, row in enumerate(form):
        pivot = row[k]
        if pivot < 0 or (pivot == 0 and any(row[k:])):
            return False
        if pivot == 0:
            continue
        for i in range(k + 1, len(form)):
            factor, lower = row[i], form[i]
            for j in range(i, len(form)):
                lower[j] = (lower[j] * pivot - factor * row[j]) // last
        last = pivot
    return True


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


def _of(regions: Regions, polytope: Polytope, vectors: Vectors, flows: Sequence[int], lent: Sequence[int]) -> Linear:
    """Constant and slopes by probabilities, where matchings are independent."""
    pushed = [[0] * regions.instance.size for _ in vectors]
    for (i, j), flow in zip(regions.edges, flows, strict=True):
        for vector, into in zip(vectors, pushed, strict=True):
            moved = flow * (vector[i] - vector[j])
            into[i] += moved
            into[j] -= moved
    constant = -Fraction(sum(value * value for into in pushed for value in into), 4**FLOW_BITS)
    slopes = [Fraction(0)] * len(polytope.low)
    for (i, j), owner, flow, part in zip(regions.edges, polytope.owners, flows, lent, strict=True):
        own = sum((v[i] - v[j]) ** 2 for v in vectors)
        if not own:
            continue  # a_e is orthogonal to all vectors, so that nothing depends on the edge
        met = sum((z[i] - z[j]) * (v[i] - v[j]) for v, z in zip(vectors, pushed, strict=True))
        left = own - Fraction(met - part * flow, 2**FLOW_BITS)
        constant += Fraction(part * flow * flow, 4**FLOW_BITS)
        low, high, least = polytope.low[owner], polytope.high[owner], 2 * own - part
        below, above = 2 * own - least * low, 2 * own - least * high
        if above < 0:
            raise RefutedError("a leaf lends more than the variance has")
        if above == 0:
            constant -= 2 * abs(left)
            continue
        # θ = left
        curve = left * left / (below * above)
        constant += curve * least * low * high
        slopes[owner] -= curve * 2 * own
    return constant, slopes
