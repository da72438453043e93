"""A search of ours: rules of list scheduling, all plain ones, then drawn and changed a little at a time."""

import random
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from ddlopt.models.deployment.microbatches.bounds import require_room, ticks_bound
from ddlopt.models.deployment.microbatches.instance import MicroBatchInstance
from ddlopt.models.deployment.microbatches.simple_order import simple_words
from ddlopt.models.deployment.microbatches.ticks import Ticks, exact_ticks, order_of
from ddlopt.solvers.deployment.microbatches.list_scheduling import Rule, rules, schedule
from ddlopt.solvers.deployment.microbatches.timing import fits, value
from ddlopt.solvers.heuristic import Clock, Heuristic

Words = tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True)
class OrderSearch(Heuristic, uses=("seed",)):
    """Iterated search over rules of list scheduling; without tries it is list scheduling.

    A device that is free begins what is most urgent of what is ready and fits: B first, F next, W where nothing else is
    ready, with an eye on what will be ready soon. F is begun only if the micro-batches in flight can still be ended one
    after another in the memory that is left. Rules differ in how far F runs ahead of B, whether F goes before B that
    far, and how long a device waits rather than begin a W.

    1. All plain rules; the best one is the first incumbent.
    2. Again and again a rule near the incumbent's: one or two chunks may be further ahead or less, or another patience
       or priority. It is taken if its order is no worse. After ``patience`` rules without a better order the search
       goes on from a drawn one of the plain rules.

    It ends where an order meets the combinatorial bound. Where no rule makes a better one, the answer is 1F1B with as
    few micro-batches in flight as fit, or one micro-batch after another.

    Parameters
    ----------
    tries : int
        How many rules after the plain ones.
    patience : int

    References
    ----------
    P. Qi et al., "Zero bubble (almost) pipeline parallelism", ICLR 2024, section 3.1, for rules of this kind; these
    are ours.
    """

    tries: int = 400
    patience: int = 60

    covers: ClassVar[type[MicroBatchInstance]] = MicroBatchInstance

    @property
    def name(self) -> str:
        """Of the method."""
        return "order-search" if self.tries else "list-scheduling"

    def answer(self, instance: MicroBatchInstance, seed: int, clock: Clock, start: Any) -> Any:
        """The order."""
        require_room(instance)
        ticks, draw = exact_ticks(instance), random.Random(seed)
        plain = rules(ticks)
        best: Words = simple_words(ticks)
        least = value(ticks, best) if fits(ticks, best) else None
        lead: Fraction | None = None
        known: dict[Rule, Fraction] = {}
        seen: dict[Rule, Fraction | None] = {}
        low, now, stale = ticks_bound(ticks), plain[0], 0
        for number in range(len(plain) + self.tries):
            if clock.expired or (least is not None and least <= low):
                break
            rule = plain[number] if number < len(plain) else _near(now, ticks, draw)
            if rule in seen:
                continue
            words, found = _run(ticks, rule, clock)
            seen[rule] = found
            stale += 1
            if found is None:
                continue
            known[rule] = found
            if words is not None and (least is None or found < least):
                best, least = words, found
                clock.report(float(ticks.seconds(found)))
            if lead is None or found < lead:
                lead, now, stale = found, rule, 0
            elif number >= len(plain) and found <= known[now]:
                now = rule
            if stale > self.patience and number >= len(plain):
                now, stale = draw.choice([each for each in plain if each in known]), 0
        return order_of(ticks, best), {"rules": float(len(seen))}


def _run(ticks: Ticks, rule: Rule, clock: Clock) -> tuple[Words | None, Fraction | None]:
    found = schedule(ticks, rule, clock)
    if found is None:
        return None, None
    words = tuple(map(tuple, found))
    return words, value(ticks, words)


def _near(rule: Rule, ticks: Ticks, draw: random.Random) -> Rule:
    """A rule that differs a little."""
    what = draw.random()
    if what < 0.1:
        return replace(rule, patience=draw.choice((0, 25, 50, 75, 100, 150)))
    if what < 0.2:
        return replace(rule, forward_first=not rule.forward_first)
    if what < 0.25:
        return replace(rule, late_first=not rule.late_first)
    n, ahead = ticks.instance.micro_batches, list(rule.ahead)
    longest = max(len(chain) for chain in ticks.instance.chains)
    for _ in range(draw.choice((1, 1, 2))):
        chunk = draw.randrange(len(ahead))
        # Beyond twice the chain more is no more.
        now = min(ahead[chunk], 2 * longest, n)
        ahead[chunk] = min(n, max(1, now + draw.choice((-2, -1, 1, 2))))
    return replace(rule, ahead=tuple(ahead))
