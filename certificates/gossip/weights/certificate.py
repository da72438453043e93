r"""Proofs of the four eigenvalue problems: vectors of whole numbers, checked without any eigenvalue.

**Why.** Let :math:`P = \sum_k p_k p_k^\top` and :math:`N = \sum_k q_k q_k^\top` for any vectors, so that nobody need
prove that they are positive semidefinite, and :math:`Z = P - N`. With :math:`\Pi = I - J`,
:math:`z_e = a_e^\top Z a_e` and :math:`W = I - \sum_e w_e a_e a_e^\top`, which has the all-one vector as W J = J,

.. math:: \langle Z, W - J \rangle = \operatorname{tr} \Pi Z - \sum_e w_e z_e .

* *averaging*: the left side is at most :math:`\rho\, (\operatorname{tr} \Pi P + \operatorname{tr} \Pi N)`. Where
  :math:`\rho \le 1` no entry of W is larger than 1, so that :math:`\sum_e w_e z_e \le \sum_e |z_e|`; so that over
  the bracket is a bound on ρ, or 1 is.
* *chain*: the same, but for :math:`u \ge 0` the weights, of which those at a node add up to 1 at most, have
  :math:`\sum_e w_e z_e \le \sum_i u_i + \sum_{e = ij} \max\{0, z_e - u_i - u_j\}`.
* *process*, N = 0: :math:`\lambda_2 \operatorname{tr} \Pi P \le \langle P, L(w) \rangle = \sum_e w_e z_e
  \le B \max_e z_e / c_e`.
* *pairwise*, N = 0: :math:`\lambda_2 \operatorname{tr} \Pi P \ge \langle P, \bar W - J \rangle
  \ge \operatorname{tr} \Pi P - \frac{1}{2n} \sum_i \max_j z_{ij}`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from ddlopt.certificates.own import OwnCertificate
from ddlopt.models.errors import RefutedError
from ddlopt.models.gossip.weights.instance import WeightsInstance

_LARGEST = 2**256
"""Of a number: honest ones have some forty bits, prices twice as many."""

Vectors = Sequence[Sequence[int]]


@dataclass(frozen=True)
class SpectralCertificate(OwnCertificate):
    """A proof that no weights are better than ``claim``.

    Parameters
    ----------
    plus, minus : sequences of sequences of n int
        The vectors p and q, in any unit.
    prices : sequence of n int
        u, in the square of that unit; none for other goals than ``chain``.
    """

    format: ClassVar[str] = "ddlopt spectral certificate"
    kind: ClassVar[str] = "spectral"
    says: ClassVar[str] = "of the instance, by vectors of whole numbers"

    plus: Vectors
    minus: Vectors = ()
    prices: Sequence[int] = ()

    @classmethod
    def fault(cls, data: dict[str, Any]) -> str | None:
        """Lists of whole numbers, none too large."""
        for name in ("plus", "minus"):
            if not isinstance(data[name], list) or not all(map(_is_vector, data[name])):
                return f"{name} is a list of lists of whole numbers below 2^256"
        return None if _is_vector(data["prices"]) else "prices is a list of whole numbers below 2^256"

    def check(self, instance: WeightsInstance, expired: Callable[[], bool]) -> int:
        """Raise RefutedError unless the vectors prove the claim."""
        found = bound_of_vectors(instance, self.plus, self.minus, self.prices)
        if found is None or (self.claim < found if instance.goal == "process" else self.claim > found):
            shown = "nothing" if found is None else f"{float(found):.12g}"
            raise RefutedError(f"the vectors prove {shown} of '{instance.name}', not {float(self.claim):.12g}")
        return 0


def _is_vector(value: Any) -> bool:
    return isinstance(value, list) and all(type(each) is int and abs(each) < _LARGEST for each in value)


def bound_of_vectors(
    instance: WeightsInstance, plus: Vectors, minus: Vectors = (), prices: Sequence[int] = ()
) -> Fraction | None:
    """What vectors prove, without any rounding; None if that is nothing.

    Raises
    ------
    RefutedError
        If their number or lengths are not those that the goal needs.
    """
    n, goal, edges = instance.size, instance.goal, instance.network.edges
    two_sided = goal in ("averaging", "chain")
    if any(len(each) != n for each in (*plus, *minus)) or len(plus) + len(minus) > 2 * n:
        raise RefutedError(f"the vectors have not {n} entries each, or are more than {2 * n}")
    if (minus and not two_sided) or (prices and goal != "chain"):
        raise RefutedError(f"goal '{goal}' has no use for {'minus' if minus and not two_sided else 'prices'}")
    if prices and (len(prices) != n or min(prices) < 0):
        raise RefutedError(f"the prices are not {n} numbers of 0 or more")
    # Everything n times, as that makes the projection whole.
    above = sum(n * sum(value * value for value in each) - sum(each) ** 2 for each in plus)
    below = sum(n * sum(value * value for value in each) - sum(each) ** 2 for each in minus)
    if above + below <= 0:
        return None
    share = [sum((p[i] - p[j]) ** 2 for p in plus) - sum((q[i] - q[j]) ** 2 for q in minus) for i, j in edges]
    if two_sided:
        taken = sum(prices)
        if goal == "averaging":
            taken += sum(map(abs, share))
        else:
            at = prices or (0,) * n
            taken += sum(max(0, z - at[i] - at[j]) for z, (i, j) in zip(share, edges, strict=True))
        return min(Fraction(1), max(Fraction(0), Fraction(above - below - n * taken, above + below)))
    if goal == "process":
        assert instance.budget is not None
        costs = map(Fraction, instance.costs or (1,) * len(edges))
        most = max((z / cost for z, cost in zip(share, costs, strict=True)), default=Fraction(0))
        return Fraction(instance.budget) * n * most / above
    best = [0] * n
    for z, (i, j) in zip(share, edges, strict=True):
        best[i], best[j] = max(best[i], z), max(best[j], z)
    return 1 - Fraction(sum(best), 2 * above)
