"""All plans of one job that keeps its widths at given prices, in whole numbers: whether one is worth more than said."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ddlopt.certificates.scheduling.plans import EFFORT, TooManyError, undominated
from ddlopt.certificates.scheduling.relaxed import FINISHED, PARTS, Ints


class KeptOffers(NamedTuple):
    """What a job may choose from.

    ``gains`` and ``changed`` (W,): what it does at each width in a slot, and in one in which it changes, no
    more. ``costs`` (n, W): of each of them in each slot of its window, in the order of time. ``least``: slots from a
    start or change to the next. ``worth``: of (m,) parts, not decreasing.
    """

    gains: Ints
    changed: Ints
    costs: Ints
    least: int
    worth: Callable[[Ints], Ints]


def kept_beaten(offers: KeptOffers, most: int) -> tuple[bool, int]:
    r"""Whether a plan has a worth less cost of more than ``most`` >= 0, and how many beginnings were looked at.

    A plan is made of runs. A run at width w that starts in slot t has w workers for :math:`\ell` slots at least, fewer
    only where the job finishes in them or its window ends, and then goes on slot by slot. All of its gains are
    :math:`g_w` but the first one, :math:`a_w`, unless the job has not run before; :math:`c_{tw}` is what it costs. Two
    looks are taken:

    * with progress p rounded up to one of N steps, backwards over time, :math:`h_t^w(p)` is no less than what can come
      of a job that ran at width w in slot t - 1 for long enough, and :math:`h_t(p)` of one that has run before:

      .. math::
          h_t(p) &= \max\bigl(h_{t+1}(p), \max_w h_{t+\ell}^w(p + a_w + (\ell - 1) g_w)
          - (c_{tw} + \dots + c_{t+\ell-1,w})\bigr), \\
          h_t^w(p) &= \max\bigl(h_t(p), h_{t+1}^w(p + g_w) - c_{tw}\bigr), \qquad
          h_n = h_n^w = u ;

      a run in which the job finishes costs up to the slot in which it does;
    * forwards over pairs (progress, cost) as they are, by slot and width, of which those stay with h less cost above
      ``most`` and no other of the same slot and width with as much progress at no more cost.

    Raises
    ------
    TooManyError
        If more pairs stay than are kept.
    """
    if not offers.costs.size:
        return False, 0
    return _Search(offers, most).found()


class _Search:
    def __init__(self, offers: KeptOffers, most: int) -> None:
        self.offers, self.most = offers, most
        self.slots, self.idle = offers.costs.shape
        self.paid = np.concatenate((np.zeros((1, self.idle), np.int64), np.cumsum(offers.costs, axis=0)))
        self.whole = int(offers.worth(np.array([PARTS]))[0])
        self.steps = min(EFFORT.finest, max(EFFORT.coarsest, EFFORT.cells // ((self.slots + 1) * (self.idle + 1))))
        self.ahead = self._ahead()
        self.labels: dict[tuple[int, int], list[tuple[Ints, Ints]]] = {}
        self.better, self.cases = False, 0

    def _up(self, parts: Ints) -> Ints:
        """Steps of progress, rounded up."""
        found: Ints = np.minimum(self.steps, -(-parts * self.steps // PARTS))
        return found

    def _run(self, w: int, slot: int, m: int) -> tuple[int, int]:
        """What the first m slots of a run after a change do, and what they cost."""
        done = int(self.offers.changed[w]) + (m - 1) * int(self.offers.gains[w])
        return min(PARTS, done), int(self.paid[slot + m, w] - self.paid[slot, w])

    def _ahead(self) -> Ints:
        """(slots + 1, W + 1, steps + 1) what progress before a slot may lead to at most."""
        places = np.arange(self.steps + 1)
        ahead = np.empty((self.slots + 1, self.idle + 1, self.steps + 1), np.int64)
        ahead[self.slots] = self.offers.worth(-(-places * PARTS // self.steps))
        for k in reversed(range(self.slots)):
            here = ahead[k, self.idle]
            here[:] = ahead[k + 1, self.idle]
            length = min(self.offers.least, self.slots - k)
            for w in range(self.idle):
                done, cost = self._run(w, k, length)
                after = np.minimum(self.steps, places + int(self._up(np.array(done))))
                found = ahead[k + length, w, after] - cost
                for m in range(length, 0, -1):
                    done, cost = self._run(w, k, m)
                    found[places + int(self._up(np.array(done))) >= self.steps] = self.whole - cost
                np.maximum(here, found, out=here)
            for w in range(self.idle):
                _, cost = self._run(w, k, 1)
                after = np.minimum(self.steps, places + int(self._up(self.offers.gains[w])))
                np.maximum(here, ahead[k + 1, w, after] - cost, out=ahead[k, w])
        return ahead

    def found(self) -> tuple[bool, int]:
        """Whether a plan is better, and how many beginnings there were."""
        nothing = np.zeros(1, np.int64), np.zeros(1, np.int64)
        for k in range(self.slots):
            length = min(self.offers.least, self.slots - k)
            everything = []
            for w in range(self.idle + 1):
                mine = self.labels.pop((k, w), [])
                if not mine:
                    continue
                parts, spent = undominated(*(np.concatenate(column) for column in zip(*mine, strict=True)))
                everything.append((parts, spent))
                if w < self.idle:
                    self._keep(parts, spent, w, k, 1, self.offers.gains[w])
            for w in range(self.idle):
                self._keep(*nothing, w, k, length, self.offers.gains[w])
            if everything:
                parts, spent = undominated(*(np.concatenate(column) for column in zip(*everything, strict=True)))
                for w in range(self.idle):
                    self._keep(parts, spent, w, k, length, self.offers.changed[w])
                self._store(parts, spent, k + 1, self.idle)
            if self.better:
                return True, self.cases
        return False, self.cases

    def _keep(self, parts: Ints, spent: Ints, w: int, slot: int, length: int, first: int) -> None:
        """Have jobs run at a width for ``length`` slots, or until they have finished, and note what they have then."""
        gain, paid = int(self.offers.gains[w]), self.paid[:, w]
        self.cases += len(parts)
        done = parts
        for m in range(1, length + 1):
            done = np.minimum(PARTS, done + (first if m == 1 else gain))
            cost = spent + int(paid[slot + m] - paid[slot])
            over = done >= FINISHED
            self.better |= bool((over & (self.whole - cost > self.most)).any())
            done, spent = done[~over], spent[~over]
        cost = spent + int(paid[slot + length] - paid[slot])
        self.better |= bool((self.offers.worth(done) - cost > self.most).any())
        self._store(done, cost, slot + length, w)

    def _store(self, parts: Ints, spent: Ints, slot: int, w: int) -> None:
        if slot >= self.slots or not len(parts):
            return
        promising = self.ahead[slot, w, self._up(parts)] - spent > self.most
        if promising.sum() > EFFORT.labels // (self.idle + 1):
            raise TooManyError
        if promising.any():
            self.labels.setdefault((slot, w), []).append((parts[promising], spent[promising]))
