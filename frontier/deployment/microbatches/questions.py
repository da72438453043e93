"""The best order, by asking whether there is one within a number of ticks, and a search between the questions."""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.deployment.microbatches.bounds import require_room, ticks_bound
from ddlopt.models.deployment.microbatches.formulations.counted_starts import MOST_COLUMNS, CountedStarts, read_order
from ddlopt.models.deployment.microbatches.instance import MicroBatchInstance
from ddlopt.models.deployment.microbatches.simple_order import simple_words
from ddlopt.models.deployment.microbatches.solution import MicroBatchOrder
from ddlopt.models.deployment.microbatches.ticks import Ticks, exact_ticks, near_ticks, order_of, words_of
from ddlopt.models.errors import InfeasibleError, NoSolutionError, SolverError
from ddlopt.models.tolerances import BOUND_MARGIN, ROUNDING
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.building import TimeUpError, building
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.deployment.microbatches.list_scheduling import best_list
from ddlopt.solvers.deployment.microbatches.search import OrderSearch
from ddlopt.solvers.deployment.microbatches.timing import fits, value
from ddlopt.solvers.deployment.microbatches.zero_bubble import ZeroBubble
from ddlopt.solvers.deployment.microbatches.zero_bubble_v import ZeroBubbleV
from ddlopt.solvers.heuristic import Asked, CertifiedMethod, Clock

_COEFFICIENTS_A_SECOND = 6_000
"""More of them in a program, and HiGHS looks at no clock for longer than is left: presolve of long rows."""


class Known:
    """The best order so far with its objective in exact ticks, and the ticks below which there is none."""

    def __init__(self, instance: MicroBatchInstance, clock: Clock) -> None:
        self.ticks, self.clock = exact_ticks(instance), clock
        self.order: MicroBatchOrder | None = None
        self.ticked: Fraction | None = None
        self.low = Fraction(ticks_bound(self.ticks))

    def take(self, order: MicroBatchOrder) -> bool:
        """Keep an order if it is better than what is known."""
        words = words_of(self.ticks, order)
        if not fits(self.ticks, words):
            return False
        found = value(self.ticks, words)
        if found is None or (self.ticked is not None and found >= self.ticked):
            return False
        self.order, self.ticked = order, found
        self.clock.report(self.seconds(found), self.seconds(self.low), order)
        return True

    def begin(self, start: MicroBatchOrder | None) -> None:
        """Begin with an order that is given, if it fits, else with those that need no search."""
        if start is None or not self.take(start):
            self._open()

    def _open(self) -> None:
        """Take the orders that need no search: by lists, and of the papers that fill holes."""
        ticks, instance = self.ticks, self.ticks.instance
        self.take(order_of(ticks, simple_words(ticks)))
        words, _ = best_list(ticks, self.clock)
        if words is not None:
            self.take(order_of(ticks, words))
        for made in (ZeroBubble(), ZeroBubble(doubled=True), ZeroBubbleV()):
            if not (self.closed or self.clock.expired) and made.refuses(instance) is None:
                with suppress(NoSolutionError):
                    for words in made.candidates(ticks):
                        self.take(order_of(ticks, words))
                        if self.clock.expired:
                            break

    def refute(self, low: Fraction) -> None:
        """Note that no order takes less."""
        if low > self.low:
            self.low = low
            if self.ticked is not None:
                self.clock.report(self.seconds(self.ticked), self.seconds(low))

    def seconds(self, ticks: Fraction) -> float:
        """An objective."""
        return float(self.ticks.seconds(ticks))

    @property
    def closed(self) -> bool:
        """Whether the gap that was asked for is reached."""
        if self.ticked is None:
            return False
        best, low = self.ticks.seconds(self.ticked), self.ticks.seconds(self.low)
        return best - low <= Fraction(self.clock.gap) * best


@dataclass(frozen=True)
class OrderQuestions(CertifiedMethod, uses=("threads", "seed")):
    """The optimum, by questions whether an order takes at most so many ticks.

    1. List scheduling, ZB-H1, ZB-H2 and ZB-V where they are defined, a search over the rules of lists, and the
       combinatorial bound. Most instances are proven by these.
    2. Otherwise bisection between the two, with :class:`CountedStarts` for a fixed number of ticks: integer programs
       without an objective, which answer with an order or refute that there is one. A span that may be a fraction of
       a tick (transfers, devices that are not in line) is the mean over a cycle of at most p devices: whole ticks come
       first, and then ticks of which these means are multiples.
    3. Times without a small unit in common are rounded down to multiples of a coarser one for these questions: what
       they refute holds for longer times as well, and orders that they find are looked at with the true times.

    Parameters
    ----------
    most_columns, most_coefficients : int
        Of a program; larger ones are not asked, nor such as HiGHS would not end within the time limit.
    """

    most_columns: int = MOST_COLUMNS
    most_coefficients: int = 1_200_000

    name: ClassVar[str] = "order-questions"
    covers: ClassVar[type[MicroBatchInstance]] = MicroBatchInstance
    proves_infeasible: ClassVar[bool] = True

    def find(self, instance: MicroBatchInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The optimum, or what the time suffices for.

        Raises
        ------
        InfeasibleError
            If a device cannot hold one micro-batch.
        """
        require_room(instance)
        known = Known(instance, clock)
        known.begin(start)
        if not known.closed:
            part = None if limits.time_s is None else clock.elapsed_s + clock.left_s / 4
            late = Asked(lambda: clock.expired or (part is not None and clock.elapsed_s > part))
            known.take(OrderSearch().answer(instance, seed, late, start)[0])
        asked = 0
        for ticks, parts in self._scales(instance):
            if known.closed or clock.expired:
                break
            asked += self._bisect(known, ticks, parts, limits, seed)
        bound = known.seconds(known.low) * (1 - ROUNDING)
        return MethodOutput(known.order, {"questions": float(asked)}, bound)

    def _scales(self, instance: MicroBatchInstance) -> Iterator[tuple[Ticks, int]]:
        """Ticks to ask in, and of how many of them the objective is a fraction that questions tell nothing about."""
        exact = exact_ticks(instance)
        parts = 1
        if instance.objective == "span" and not instance.in_line:
            parts = math.lcm(*range(1, instance.devices + 1))
        near = near_ticks(instance)
        for ticks in (exact, near):
            if len(ticks.kinds) * max(ticks.work) <= self.most_columns:
                yield ticks, min(parts, instance.devices)
                if parts > 1 and len(ticks.kinds) * max(ticks.work) * parts <= self.most_columns:
                    yield Ticks(instance, ticks.unit_s / parts), 1
                return

    def _bisect(self, known: Known, ticks: Ticks, parts: int, limits: Limits, seed: int) -> int:
        """Ask until the gap is closed or the time is up; how many questions there were."""
        scale = ticks.unit_s / known.ticks.unit_s
        # Rounded ticks are a little short, and what takes one more of them is no better.
        slack = Fraction(1) if ticks.exact else Fraction(1 - BOUND_MARGIN)
        asked = 0
        unknown = False
        while known.ticked is not None and not (known.closed or known.clock.expired or unknown):
            # Whole numbers of ticks that are not refuted, and less than what is known.
            low = math.ceil(known.low / scale)
            high = math.ceil(known.ticked / scale * slack) - 1
            if low > high:
                break
            within = high if asked == 0 and high - low < 3 else (low + high) // 2
            if len(ticks.kinds) * within**2 > min(self.most_coefficients, _COEFFICIENTS_A_SECOND * known.clock.left_s):
                break
            asked += 1
            found = ask(ticks, within, known.clock, limits, seed)
            if found is False:
                # More than so many ticks, so at least the next whole number, or the next mean over a cycle.
                known.refute((within + Fraction(1, parts)) * scale)
                if parts > 1 and within == high:
                    break
            elif found is None or not known.take(found):
                unknown = True
        return asked


def ask(ticks: Ticks, within: int, clock: Clock, limits: Limits, seed: int) -> MicroBatchOrder | Literal[False] | None:
    """An order that takes at most so many ticks; False if there is none; None if time is up before it is known."""
    model = pyo.ConcreteModel()
    model.order = pyo.Block()
    left = None if limits.time_s is None else max(clock.left_s, 1e-3)
    try:
        with building(left):
            CountedStarts(within=within).fill(model.order, ticks)
    except InfeasibleError:
        return False
    except (TimeUpError, SolverError):
        return None
    model.objective = pyo.Objective(expr=0.0 * model.order.length)
    left = None if limits.time_s is None else max(clock.left_s, 1e-3)
    with clock.lending_ctrl_c():
        outcome = Highs().solve(model, replace(limits, time_s=left, gap=0.5), seed)
    if outcome.status is Status.INFEASIBLE:
        return False
    return read_order(model.order, ticks) if outcome.objective is not None else None
