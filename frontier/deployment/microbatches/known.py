"""What is known of an instance: the best order so far, and the ticks below which there is none."""

from contextlib import suppress
from fractions import Fraction

from ddlopt.models.deployment.microbatches.bounds import ticks_bound
from ddlopt.models.deployment.microbatches.instance import MicroBatchInstance
from ddlopt.models.deployment.microbatches.solution import MicroBatchOrder
from ddlopt.models.deployment.microbatches.ticks import exact_ticks, order_of, words_of
from ddlopt.models.errors import NoSolutionError
from ddlopt.solvers.deployment.microbatches.search import OrderSearch
from ddlopt.solvers.deployment.microbatches.timing import fits, value
from ddlopt.solvers.deployment.microbatches.zero_bubble import ZeroBubble
from ddlopt.solvers.deployment.microbatches.zero_bubble_v import ZeroBubbleV
from ddlopt.solvers.heuristic import Clock


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
        self.take(OrderSearch(tries=0).answer(instance, 0, self.clock, None)[0])
        for made in (ZeroBubble(), ZeroBubble(doubled=True), ZeroBubbleV()):
            if not (self.closed or self.clock.expired) and made.refuses(instance) is None:
                with suppress(NoSolutionError):
                    for words in made.candidates(ticks):
                        self.take(order_of(ticks, words))
                        if self.clock.expired:
                            break

    def raise_to(self, low: Fraction) -> None:
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
