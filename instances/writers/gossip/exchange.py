"""Times of exchange as tables."""

from collections.abc import Iterator
from itertools import pairwise

from ddlopt.instances.writers.layout import Section, section
from ddlopt.models.gossip.exchange.instance import ExchangeInstance, ExchangeTimes


def table(instance: ExchangeInstance, solution: ExchangeTimes) -> Iterator[Section]:
    """Sections of a list of times."""
    ends = pairwise((0, *solution.times, instance.size))
    rows = [(number, start, end - start) for number, (start, end) in enumerate(ends)]
    yield section("Sends (that of step 0 is given)", ("send", "step", "used for steps"), rows)
