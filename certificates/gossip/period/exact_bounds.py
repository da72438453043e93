"""The least time to a target in rational numbers, where mixing is given: no period and no step is faster."""

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, frexp, inf, isfinite, lcm

from ddlopt.certificates.gossip.period.exact_rounds import ExactMixing
from ddlopt.models.errors import InfeasibleError, NotApplicableError
from ddlopt.models.gossip.period.instance import PeriodInstance
from ddlopt.models.gossip.period.stragglers import slowest_exact
from ddlopt.models.gossip.period.time_to_target import TimeToTarget

_EASED = (Fraction(1, 10**8), Fraction(1, 10**6), Fraction(1, 10**4), Fraction(1, 10**2))
"""By how much less is claimed than floats find: the less, the more intervals of periods are looked at."""
_EASED_ROUNDS = (Fraction(1, 25000), Fraction(1, 1000), Fraction(1, 100))
"""The same where rounds are designed: each interval of their seconds costs a search over periods."""
_DIGITS, _DIGITS_ROUNDS = 40, 17
"""Binary ones of a claim, where mixing is given and where rounds are designed: processors whose floats differ in the
last digits are to claim the same."""
_GRID = 32
"""Budgets of seconds tried in floats, by ratio over four powers of ten, before the best is searched between them."""
_MOST_INTERVALS = 4000
"""Intervals of seconds of a round that are looked at for one claim: half a minute."""
_BESIDE_BITS = 23
"""How far the steps are, relatively, that a best step lies between, 2 to the minus this: it costs the square of it."""
_STEP_BITS = 30
"""Binary digits that a step has beyond those of a float."""
_NARROW = Fraction(1, 10**5)
"""Relative width of an interval of periods that is divided no further: chords differ from curves by its square."""
_LEAST_MIXING = 1e-9
"""Of a budget of seconds, below which floats say that workers never agree."""
_LONG = 512
"""Steps in a period beyond which stragglers are taken for average ones: the sums are over as many terms."""
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

    Where rounds are designed, the seconds C of a round are divided into intervals, too: no plan of one is faster than
    one with its least C and the most mixing that its largest C allows
    (:mod:`~ddlopt.certificates.gossip.period.exact_rounds`); the claim is 6 · 10⁻⁵ less than what floats find, or more.

    Raises
    ------
    NotApplicableError
        If t is not proven in intervals of that width.
    InfeasibleError
        If no period reaches the target with the step that is given: progress in a step, which falls with the period,
        is at most 0 at period 1, in fractions.
    """
    if instance.rounds is not None:
        mixing = ExactMixing(instance.rounds)
        guess = _least_designed(instance, mixing)
        if not isfinite(guess):
            raise NotApplicableError(f"no budget of seconds that was tried reaches the target of '{instance.name}'")
        claims = [_coarse(Fraction(guess) * (1 - eased), _DIGITS_ROUNDS) for eased in _EASED_ROUNDS]
        proven: Iterator[Fraction] = (claim for claim in claims if _proves_designed(instance, mixing, claim))
    else:
        exact = _Exact(instance)
        if exact.progress(Fraction(1)) <= 0:
            raise InfeasibleError(f"'{instance.name}': no period reaches the target {instance.target:g}")
        guess = _least_given(instance)
        claims = [_coarse(Fraction(guess) * (1 - eased), _DIGITS) for eased in _EASED]
        proven = (claim for claim in claims if exact.proves(claim))
    found = next(proven, None)
    if found is None:
        raise NotApplicableError(f"the least time of '{instance.name}' is not proven in intervals of periods")
    return found


def _coarse(claim: Fraction, digits: int) -> Fraction:
    """The claim, rounded down to a number of binary digits."""
    unit = Fraction(2) ** (frexp(claim)[1] - digits)
    return claim // unit * unit


def _proves_designed(instance: PeriodInstance, mixing: ExactMixing, claim: Fraction) -> bool:
    """Whether no period and no rounds take less than ``claim`` seconds, whatever a round takes."""
    assert instance.rounds is not None
    ends = [(Fraction(0), max(map(Fraction, instance.rounds.times_s)))]
    for _ in range(_MOST_INTERVALS):
        if not ends:
            return True
        low, high = ends.pop()
        if _holds_between(instance, mixing, claim, low, high):
            continue
        mixing.settle(float(high))
        if _holds_between(instance, mixing, claim, low, high):
            continue
        middle = (low + high) / 2 if low else high / 4
        ends += [(low, middle), (middle, high)]
    return False


def _holds_between(
    instance: PeriodInstance, mixing: ExactMixing, claim: Fraction, low: Fraction, high: Fraction
) -> bool:
    """Whether no plan whose rounds take ``low``..``high`` seconds takes less than ``claim``."""
    most = mixing.most(high)
    if most <= 0:
        return True  # workers never agree
    exact = _Exact(instance, low, 1 - most)
    return exact.mixing < 1 and exact.proves(claim)


def _least_designed(instance: PeriodInstance, mixing: ExactMixing) -> float:
    """What floats find to be the least time over budgets of seconds, in the valley of the best of a grid."""
    assert instance.rounds is not None
    longest = max(instance.rounds.times_s)

    def seconds(place: float) -> float:
        budget = longest * 10.0 ** (-4.0 * place / _GRID)
        reached = mixing.settle(budget)
        return _least_seconds(instance, budget, 1.0 - min(1.0, reached)) if reached > _LEAST_MIXING else inf

    found = {place: seconds(place) for place in map(float, range(_GRID + 1))}
    best = min(found, key=lambda place: found[place])
    low, up = best - 1.0, best + 1.0
    for _ in range(12):  # a hundredth of the distance of two budgets: the error is the square
        one, two = max(0.0, low + (up - low) / 3), max(0.0, up - (up - low) / 3)
        found |= {one: seconds(one), two: seconds(two)}
        low, up = (low, two) if found[one] <= found[two] else (one, up)
    return min(found.values())


class _Exact:
    """The constants of an instance as fractions."""

    def __init__(
        self, instance: PeriodInstance, communication_s: Fraction | None = None, mixing: Fraction | None = None
    ) -> None:
        if communication_s is None or mixing is None:
            assert instance.mixing is not None
            assert instance.communication_s is not None
            communication_s, mixing = Fraction(instance.communication_s), Fraction(instance.mixing)
        noise = Fraction(instance.smoothness) * Fraction(instance.variance)
        self.times, self.mixing = TimeToTarget.of(instance), float(mixing)
        self.spread = (1 + mixing) / (1 - mixing)
        self.credit, self.whole = instance.credit, instance.whole
        self.noise, self.drift = noise / instance.workers, noise * Fraction(instance.smoothness)
        self.target, self.gap = Fraction(instance.target), 2 * Fraction(instance.initial_gap)
        self.below = lcm(self.target.denominator, self.noise.denominator)
        self.compute, self.communication = Fraction(instance.compute_s), communication_s
        self.stragglers = instance.stragglers
        self.step = None if instance.step_size is None else Fraction(instance.step_size)

    def computing(self, period: Fraction) -> Fraction:
        """Seconds of a step at least, in this period and in shorter ones."""
        slow, steps = self.stragglers, max(1, ceil(period))
        if slow is None:
            return self.compute
        if not slow.random or steps > _LONG:
            return self.compute * slow.limit
        return self.compute * slowest_exact(slow, steps, up=False) / steps

    def progress(self, period: Fraction) -> Fraction:
        """No step makes more of one; exact where the step is given."""
        drift = self.drift * (self.spread * period - self.credit)
        if self.step is not None:
            return self.step * (self.target - self.step * (self.noise + self.step * drift))
        # In whole numbers over ``below``, and steps in parts of ``unit``: fractions would reduce each of many results.
        below = self.below * drift.denominator
        target, noise, cubed = (
            part.numerator * (below // part.denominator) for part in (self.target, self.noise, drift)
        )
        place, unit = self.times.step(float(period), self.mixing).as_integer_ratio()
        place, unit = place << _STEP_BITS, unit << _STEP_BITS
        target, noise = target * unit**2, noise * unit

        def slope(step: int) -> int:
            return target - step * (2 * noise + 3 * step * cubed)

        before, behind = place - (place >> _BESIDE_BITS), place + (place >> _BESIDE_BITS)
        while slope(before) < 0:
            before //= 2
        while slope(behind) > 0:
            behind *= 2
        made = before * (target - before * (noise + before * cubed))
        return Fraction(made + slope(before) * (behind - before), below * unit**3)

    def proves(self, claim: Fraction) -> bool:
        """Whether no period is proven to take less than ``claim`` seconds."""
        last, alone = Fraction(2), self.compute if self.stragglers is None else self.compute * self.stragglers.limit
        while claim * self.progress(last) > self.gap * alone and last < self.times.most:
            last *= 2
        ends = [(Fraction(1), last, self.progress(Fraction(1)), self.progress(last))]
        while ends:
            low, high, first, final = ends.pop()
            unit = self.whole and high - low == 1
            if self._holds(claim, low, high, first, final, ends_only=unit):
                continue
            if unit or high - low <= _NARROW * low:
                return False
            middle = Fraction((low + high) // 2) if self.whole else (low + high) / 2
            between = self.progress(middle)
            ends += [(low, middle, first, between), (middle, high, between, final)]
        return True

    def _holds(
        self, claim: Fraction, low: Fraction, high: Fraction, first: Fraction, final: Fraction, ends_only: bool
    ) -> bool:
        """Whether no period in ``low``..``high`` takes less than ``claim``, progress being below a chord."""
        fall = (first - final) / (high - low)
        square, constant, taken = claim * fall, self.gap * self.communication, claim * (first + fall * low)
        linear = self.gap * self.computing(high) - taken

        def short(period: Fraction) -> bool:
            own = self.gap * self.computing(period) - taken if ends_only else linear
            return (square * period + own) * period + constant < 0

        if short(low) or short(high):
            return False
        inside = square > 0 and low < -linear / (2 * square) < high
        return ends_only or not inside or 4 * square * constant >= linear**2


def _least_given(instance: PeriodInstance) -> float:
    assert instance.mixing is not None
    assert instance.communication_s is not None
    return _least_seconds(instance, instance.communication_s, instance.mixing)


def _least_seconds(instance: PeriodInstance, communication_s: float, mixing: float) -> float:
    """What floats find to be the least time; infinite where no period reaches the target."""
    times = TimeToTarget.of(instance)

    def seconds(period: float) -> float:
        return times.seconds(period, communication_s, mixing)

    alone = seconds(1.0)
    if not isfinite(alone):
        return inf
    high = times.last(alone, mixing)
    ratio = high ** (1 / _TRIED)
    grid = [ratio**place for place in range(_TRIED + 1)]
    if instance.whole:
        return min(map(seconds, _rounded(grid)))
    values = list(map(seconds, grid))
    found = min(values)
    start = values.index(found)
    low, up = grid[max(0, start - 1)], grid[min(_TRIED, start + 1)]
    for _ in range(100):  # a hundred thirds of so short an interval are less than rounding
        one, two = low + (up - low) / 3, up - (up - low) / 3
        low, up = (low, two) if seconds(one) <= seconds(two) else (one, up)
    return min(found, seconds((low + up) / 2))


def _rounded(grid: list[float]) -> Iterator[float]:
    """The whole periods next to those of a grid, each once: most are next to many."""
    return map(float, dict.fromkeys(int(period) + step for period in grid for step in (0, 1)))
