"""What progress is worth: functions of the part p of a job's mini-batches that is done, 0 <= p <= 1.

What is done beyond the mini-batches wanted is worth nothing more (excessive training is avoided), and no progress is
worth 0.
"""

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ddlopt.models.contracts import Number, Part

DONE = 1 - Fraction(1, 10**9)
"""A job counts as finished from this part of its mini-batches on: solvers and floats leave a little.

With it ends are in the same slots in floats as in fractions: what is a whole number of slots' work, as it often is, is
above this by far more than rounding.
"""


class _Utility(Part):
    concave: ClassVar[bool] = True
    """Concave and non-decreasing in p, with u(0) = 0."""

    value: float = Field(default=1.0, gt=0)

    @abstractmethod
    def of(self, part: Number) -> Number:
        """Utility of a part p in [0, 1]; a Fraction stays one, rounded once where the function is not rational."""

    @abstractmethod
    def slope(self, part: float) -> float:
        """Derivative in p (from the left at 1); infinity where there is none."""

    def _like(self, part: Number, value: float) -> Number:
        return Fraction(value) if isinstance(part, Fraction) else value


class Capped(_Utility):
    """``value · p``: every mini-batch wanted is worth the same, every other nothing."""

    kind: Literal["capped"] = "capped"

    def of(self, part: Number) -> Number:
        """See the class."""
        return self._like(part, self.value) * part

    def slope(self, part: float) -> float:
        """Constant."""
        return self.value


class Logarithmic(_Utility):
    """``value · log(1 + curvature · p) / log(1 + curvature)``."""

    kind: Literal["logarithmic"] = "logarithmic"
    curvature: float = Field(default=10.0, gt=0)

    def of(self, part: Number) -> Number:
        """See the class."""
        return self._like(part, self.value * math.log1p(self.curvature * float(part)) / math.log1p(self.curvature))

    def slope(self, part: float) -> float:
        """Derivative."""
        return self.value * self.curvature / (1 + self.curvature * part) / math.log1p(self.curvature)


class LossCurve(_Utility):
    r"""``value · r p / (1 + r p)``: the fall of a loss :math:`\ell(Z) = 1 / (\beta_0 Z + \beta_1) + \beta_2`.

    With F mini-batches wanted, ``rate`` r = beta_0 F / beta_1, and ``value`` is the worth of 1/beta_1, all that the
    loss can fall by.
    """

    kind: Literal["loss_curve"] = "loss_curve"
    rate: float = Field(default=10.0, gt=0)

    def of(self, part: Number) -> Number:
        """See the class."""
        rate = self._like(part, self.rate)
        return self._like(part, self.value) * rate * part / (1 + rate * part)

    def slope(self, part: float) -> float:
        """Derivative."""
        return self.value * self.rate / (1 + self.rate * part) ** 2


class Fair(_Utility):
    r"""α-fairness of progress: :math:`v\,((\epsilon + p)^{1-\alpha} - \epsilon^{1-\alpha}) / (1 - \alpha)`.

    ``alpha`` = 1 is proportional fairness, :math:`v \log(1 + p / \epsilon)`; large values near max-min fairness. The
    offset ``epsilon`` keeps the worth of the first mini-batch finite, and the constant makes no progress worth 0.
    """

    kind: Literal["fair"] = "fair"
    alpha: float = Field(default=1.0, ge=0, le=8)
    epsilon: float = Field(default=0.01, ge=1e-4, le=1)

    def of(self, part: Number) -> Number:
        """See the class."""
        p = float(part)
        if self.alpha == 1:
            return self._like(part, self.value * math.log1p(p / self.epsilon))
        power = 1 - self.alpha
        return self._like(part, self.value * ((self.epsilon + p) ** power - self.epsilon**power) / power)

    def slope(self, part: float) -> float:
        """Derivative."""
        return float(self.value * (self.epsilon + part) ** -self.alpha)


class AllOrNothing(_Utility):
    """``value`` for a finished job, nothing before; not concave, so that no guarantee of a greedy holds."""

    concave: ClassVar[bool] = False

    kind: Literal["all_or_nothing"] = "all_or_nothing"

    def of(self, part: Number) -> Number:
        """See the class."""
        return self._like(part, self.value) * int(part >= DONE)

    def slope(self, part: float) -> float:
        """0 before the end, infinity there."""
        return math.inf if part >= DONE else 0.0


Utility = Annotated[Capped | Logarithmic | LossCurve | Fair | AllOrNothing, Field(discriminator="kind")]
