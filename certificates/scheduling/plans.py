"""All plans of one job at given prices, in whole numbers: whether one is worth more than is said."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ddlopt.certificates.scheduling.relaxed import PARTS, Ints

_FINEST, _COARSEST = 2**12, 2**6
"""Steps of progress of the first, coarse look."""
_CELLS = 2**22
"""Of the table of that look: 32 MB."""
_MOST_LABELS = 300_000
"""Beginnings of plans in a slot: tens of megabytes."""


class TooManyError(Exception):
    """More beginnings of plans than are kept."""


class Offer(NamedTuple):
    """What a job may choose from.

    ``widths``, ``gains`` (W,): as they increase. ``prices`` (n,): of a worker in each slot of its window, increasing.
    ``worth``: of (m,) parts, not decreasing.
    """

    widths: Ints
    gains: Ints
    prices: Ints
    worth: Callable[[Ints], Ints]


def beaten(offer: Offer, most: int) -> tuple[bool, int]:
    r"""Whether a plan has a worth less cost of more than ``most`` >= 0, and how many beginnings were looked at.

    Progress counts wherever it is made, so a best plan has its workers in the cheapest slots, at least one in each of
    the first k of them. Two looks are taken:

    * with progress rounded up to one of N steps, backwards over the slots,

      .. math::
          h_k(p) = \max\bigl(u(p), \max_w h_{k+1}(p + \lceil g_w \rceil) - w \lambda_k\bigr),

      no less than what any plan is worth that has done p in the first k slots, further costs taken off;
    * forwards over pairs (progress, cost) as they are, of which those stay with :math:`h_k(p)` less cost above
      ``most`` and no other with as much progress at no more cost.

    Raises
    ------
    TooManyError
        If more pairs stay than are kept.
    """
    if not len(offer.widths) or not len(offer.prices):
        return False, 0
    slots = min(len(offer.prices), -(-PARTS // int(offer.gains[0])))
    whole = int(offer.worth(np.array([PARTS]))[0])
    dear = (whole + 1) // offer.widths + 1  # at this price a width costs more than all progress is worth
    costs = np.minimum(offer.prices[:slots, None], dear[None, :]) * offer.widths[None, :]
    steps = min(_FINEST, max(_COARSEST, _CELLS // slots))
    ahead = _ahead(offer, costs, steps)
    if ahead[0, 0] <= most:
        return False, 1
    parts, spent, cases = np.zeros(1, np.int64), np.zeros(1, np.int64), 0
    for k in range(slots):
        parts = np.minimum(PARTS, parts[:, None] + offer.gains).ravel()
        spent = (spent[:, None] + costs[k]).ravel()
        cases += len(parts)
        promising = ahead[k + 1, -(-parts * steps // PARTS)] - spent > most
        parts, spent = undominated(parts[promising], spent[promising])
        if not len(parts):
            break
        if len(parts) * len(offer.widths) > _MOST_LABELS:
            raise TooManyError
        if (offer.worth(parts) - spent > most).any():
            return True, cases
    return False, cases


def _ahead(offer: Offer, costs: Ints, steps: int) -> Ints:
    """(slots + 1, steps + 1) what progress before each slot may lead to at most."""
    slots, places = len(costs), np.arange(steps + 1)
    stopped = offer.worth(-(-places * PARTS // steps))
    after = [np.minimum(steps, places + -(-int(gain) * steps // PARTS)) for gain in offer.gains]
    ahead = np.empty((slots + 1, steps + 1), np.int64)
    ahead[slots] = stopped
    for k in reversed(range(slots)):
        ahead[k] = stopped
        for place, cost in zip(after, costs[k].tolist(), strict=True):
            np.maximum(ahead[k], ahead[k + 1, place] - cost, out=ahead[k])
    return ahead


def undominated(parts: Ints, spent: Ints) -> tuple[Ints, Ints]:
    """Pairs but those that another one beats, which has as much progress at no more cost."""
    order = np.lexsort((spent, -parts))
    parts, spent = parts[order], spent[order]
    cheaper = np.ones(len(spent), bool)
    cheaper[1:] = spent[1:] < np.minimum.accumulate(spent)[:-1]
    return parts[cheaper], spent[cheaper]
