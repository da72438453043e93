"""The least time to a target in rational numbers, where mixing is given: no period and no step is faster."""

from collections.abc import Iterator
from fractions import Fraction

from ddlopt.models.errors import InfeasibleError, NotApplicableError
from ddlopt.models.gossip.period.instance import PeriodInstance
from ddlopt.models.gossip.period.time_to_target import TimeToTarget

_EASED = (Fraction(1, 10**8), Fraction(1, 10**6), Fraction(1, 10**4), Fraction(1, 10**2))
"""By how much less is claimed than floats find: the less, the more intervals of periods are looked at."""
_BESIDE = Fraction(1, 10**7)
"""How far the steps are, relatively, that a best step lies between: what it costs is the square of it."""
_NARROW = Fraction(1, 10**5)
"""Relative width of an interval of periods that is divided no further: chords differ from curves by its square."""
_TRIED = 4096
"""Periods looked at in floats, evenly by ratio, before the valley of the best is searched."""


def exact_period_bound(instance: PeriodInstance) -> Fraction:
    r"""Seconds that no plan is faster than, within 10⁻⁸ of what floats find, or more where that is not proven.

    With the names of :mod:`~ddlopt.models.gossip.period.time_to_target`: that all plans take t seconds at least says
    that :math:`t\, p(\varphi\tau - 1) \le 2\Delta (Y + C/\tau)` for every period :math:`\tau \ge 1`. The largest
    progress p is a maximum over steps of a concave function, which lies below its tangent at a step before the best
    one, up to a step behind it; and it is convex and falls with the period, so on an interval it lies below a chord,
    which makes the inequality one of second degree in :math:`\tau`. Where that fails the interval is halved, down to
    unit intervals of whole periods, of which only the ends count. Beyond the last interval computing alone takes t.

    Raises
    ------
    NotApplicableError
        If mixing is designed, or t is not proven in intervals of that width.
    InfeasibleError
        If no period reaches the target with the step that is given.
    """
    if instance.rounds is not None:
        raise NotApplicableError("the best mixing of rounds is not recomputed in rational numbers")
    exact = _Exact(instance)
    if exact.progress(Fraction(1)) <= 0:
        raise InfeasibleError(f"'{instance.name}': no period reaches the target {instance.target:g}")
    guess = Fraction(_least_seconds(instance))
    for eased in _EASED:
        claim = guess * (1 - eased)
        if exact.proves(claim):
            return claim
    raise NotApplicableError(f"the least time of '{instance.name}' is not proven in intervals of periods")


class _Exact:
    """The constants of an instance as fractions."""

    def __init__(self, instance: PeriodInstance) -> None:
        assert instance.mixing is not None
        assert instance.communication_s is not None
        mixing, noise = Fraction(instance.mixing), Fraction(instance.smoothness) * Fraction(instance.variance)
        self.times, self.mixing = TimeToTarget.of(instance), instance.mixing
        self.spread = (1 + mixing) / (1 - mixing)
        self.credit, self.whole = instance.credit, instance.whole
        self.noise, self.drift = noise / instance.workers, noise * Fraction(instance.smoothness)
        self.target, self.gap = Fraction(instance.target), 2 * Fraction(instance.initial_gap)
        self.compute, self.communication = Fraction(instance.compute_s), Fraction(instance.communication_s)
        self.step = None if instance.step_size is None else Fraction(instance.step_size)

    def progress(self, period: Fraction) -> Fraction:
        """No step makes more of one; exact where the step is given."""
        drift = self.drift * (self.spread * period - self.credit)

        def made(step: Fraction) -> Fraction:
            return step * (self.target - step * (self.noise + step * drift))

        def slope(step: Fraction) -> Fraction:
            return self.target - step * (2 * self.noise + 3 * step * drift)

        if self.step is not None:
            return made(self.step)
        guess = Fraction(self.times.step(float(period), self.mixing))
        before, behind = guess * (1 - _BESIDE), guess * (1 + _BESIDE)
        while slope(before) < 0:
            before /= 2
        while slope(behind) > 0:
            behind *= 2
        return made(before) + slope(before) * (behind - before)

    def proves(self, claim: Fraction) -> bool:
        """Whether no period is proven to take less than ``claim`` seconds."""
        last = Fraction(2)
        while claim * self.progress(last) > self.gap * self.compute:
            last *= 2
        ends = [(Fraction(1), last)]
        while ends:
            low, high = ends.pop()
            first, final = self.progress(low), self.progress(high)
            unit = self.whole and high - low == 1
            if self._holds(claim, low, high, first, final, ends_only=unit):
                continue
            if unit or high - low <= _NARROW * low:
                return False
            middle = Fraction((low + high) // 2) if self.whole else (low + high) / 2
            ends += [(low, middle), (middle, high)]
        return True

    def _holds(
        self, claim: Fraction, low: Fraction, high: Fraction, first: Fraction, final: Fraction, ends_only: bool
    ) -> bool:
        """Whether no period in ``low``..``high`` takes less than ``claim``, progress being below a chord."""
        fall = (first - final) / (high - low)
        square = claim * fall
        linear = self.gap * self.compute - claim * (first + fall * low)
        constant = self.gap * self.communication
        if any((square * period + linear) * period + constant < 0 for period in (low, high)):
            return False
        inside = square > 0 and low < -linear / (2 * square) < high
        return ends_only or not inside or 4 * square * constant >= linear**2


def _least_seconds(instance: PeriodInstance) -> float:
    """What floats find to be the least time."""
    times = TimeToTarget.of(instance)
    assert instance.mixing is not None
    assert instance.communication_s is not None
    mixing, communication_s = instance.mixing, instance.communication_s

    def seconds(period: float) -> float:
        return times.seconds(period, communication_s, mixing)

    alone, high = seconds(1.0), 2.0
    while times.seconds(high, 0.0, mixing) < alone:
        high *= 2.0
    ratio = high ** (1 / _TRIED)
    grid = [ratio**place for place in range(_TRIED + 1)]
    found = min(map(seconds, _rounded(grid) if instance.whole else grid))
    if instance.whole:
        return found
    start = min(range(_TRIED + 1), key=lambda place: seconds(grid[place]))
    low, up = grid[max(0, start - 1)], grid[min(_TRIED, start + 1)]
    for _ in range(100):  # a hundred thirds of so short an interval are less than rounding
        one, two = low + (up - low) / 3, up - (up - low) / 3
        low, up = (low, two) if seconds(one) <= seconds(two) else (one, up)
    return min(found, seconds((low + up) / 2))


def _rounded(grid: list[float]) -> Iterator[float]:
    """The whole periods next to those of a grid."""
    for period in grid:
        yield float(int(period))
        yield float(int(period) + 1)
