"""What progress is worth: values by hand, slopes, and concavity."""

import math
from fractions import Fraction

import numpy as np
import pytest
from volume import for_each

from ddlopt.models.scheduling import AllOrNothing, Capped, Fair, Logarithmic, LossCurve
from ddlopt.models.scheduling.utility import DONE

CONCAVE = [
    Capped(value=3),
    Logarithmic(value=2, curvature=9),
    LossCurve(value=2, rate=4),
    Fair(value=2, alpha=0, epsilon=0.25),
    Fair(value=2, alpha=0.5, epsilon=0.25),
    Fair(value=2, alpha=1, epsilon=0.25),
    Fair(value=2, alpha=3, epsilon=0.25),
]


@for_each(
    ("utility", "half", "whole"),
    [
        (CONCAVE[0], 1.5, 3),
        (CONCAVE[1], 2 * math.log10(5.5), 2),
        (CONCAVE[2], 2 * 2 / 3, 2 * 4 / 5),
        (CONCAVE[3], 1, 2),
        (CONCAVE[4], 4 * (math.sqrt(0.75) - 0.5), 4 * (math.sqrt(1.25) - 0.5)),
        (CONCAVE[5], 2 * math.log(3), 2 * math.log(5)),
        (CONCAVE[6], 16 - 1 / 0.75**2, 16 - 1 / 1.25**2),
        (AllOrNothing(value=3), 0, 3),
    ],
)
def test_values_by_hand(utility, half, whole):
    assert utility.of(0.0) == 0
    assert utility.of(0.5) == pytest.approx(half, rel=1e-12)
    assert utility.of(1.0) == pytest.approx(whole, rel=1e-12)
    for part in (Fraction(0), Fraction(1, 2), Fraction(1)):
        exact = utility.of(part)
        assert isinstance(exact, Fraction | int)
        assert float(exact) == pytest.approx(utility.of(float(part)), rel=1e-12)


@for_each("utility", CONCAVE)
def test_concave_and_never_falling(utility):
    assert utility.concave
    values = np.array([utility.of(part) for part in np.linspace(0, 1, 101)])
    assert (np.diff(values) > 0).all()
    assert (np.diff(values, 2) <= 1e-12).all()


@for_each("utility", CONCAVE)
def test_the_slope_is_the_derivative(utility):
    for part in (0.1, 0.5, 0.9):
        step = 1e-6
        assert utility.slope(part) == pytest.approx(
            (utility.of(part + step) - utility.of(part - step)) / (2 * step), rel=1e-6
        )
    assert utility.slope(0.0) == pytest.approx((utility.of(1e-7) - utility.of(0.0)) / 1e-7, rel=1e-4)


def test_rational_utilities_are_exact():
    assert Capped(value=0.5).of(Fraction(1, 3)) == Fraction(1, 6)
    assert LossCurve(value=2, rate=4).of(Fraction(1, 3)) == Fraction(8, 7)


def test_all_or_nothing():
    utility = AllOrNothing(value=2)
    assert not utility.concave
    assert utility.of(1 - 1e-8) == 0
    assert utility.of(DONE) == 2
    assert utility.slope(0.5) == 0
    assert utility.slope(1.0) == math.inf


def test_fairness_is_continuous_in_alpha():
    at = [Fair(alpha=alpha, epsilon=0.1).of(0.7) for alpha in (1 - 1e-7, 1, 1 + 1e-7)]
    assert at[0] == pytest.approx(at[1], rel=1e-5)
    assert at[2] == pytest.approx(at[1], rel=1e-5)
