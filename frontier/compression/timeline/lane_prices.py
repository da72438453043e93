"""Prices for proofs by labels on several lanes, from the linear relaxation that mixes messages."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack, vstack

from ddlopt.certificates.compression.label_proof.labels import MOST_PRICE, Price
from ddlopt.certificates.compression.label_proof.lanes import BITS, Arcs, Lanes, Marks, arcs_of
from ddlopt.frontier.compression.timeline.label_setting.prices import Split
from ddlopt.models.tolerances import ZERO_TOL

Floats = npt.NDArray[np.float64]
_UNIT = 2.0**BITS
"""Times and errors are about as large as what they are compared with."""


class _Relaxed(NamedTuple):
    """Weights (lanes, n), the price of the error, and (k,) the messages' shares."""

    lambdas: Floats
    mu: float
    shares: Floats


@dataclass
class LanePricing:
    r"""Where prices come from.

    With :math:`x_a` the share of message a, over gradients :math:`f_a .. l_a`, of encoding :math:`e_a` and
    :math:`d_{as}` on lane s, the relaxation is

    .. math:: \min T \ge \sum_{f_a \le i \le l_a} R_{l_a} x_a + \sum_{f_a \le i} e_a x_a + \sum_{l_a \ge i} d_{as} x_a ,

    for all gradients i and lanes s, over mixtures of ways from the first gradient to the last that keep the budget;
    with goal ``error`` the least error with T within its own. The multipliers of these rows are the weights
    :math:`\lambda_{is}` at which the bound of :mod:`ddlopt.certificates.compression.label_proof` is best.

    Parameters
    ----------
    lanes : Lanes
    allowed : (n, m) array of bool
        The options that there are.
    """

    lanes: Lanes
    allowed: Marks

    @cached_property
    def arcs(self) -> Arcs:
        """The messages."""
        return arcs_of(self.lanes, self.allowed)

    def first(self, others: bool) -> list[Price]:
        """The best prices for all plans; where nothing keeps the budget, of the last gradient's time on each lane."""
        if self._relaxed is not None:
            return [whole(self._relaxed.lambdas, self._relaxed.mu)]
        ends = np.zeros(self.lanes.busy.shape[:2])
        ends[:, -1] = 1.0
        return [whole(ends, 0.0)]

    @cached_property
    def split(self) -> Split | None:
        """The gradient whose options the relaxation mixes most unlike, in encoding, on a lane or in error.

        None if every gradient has one option.
        """
        several = self.allowed.sum(axis=1) > 1
        if not several.any():
            return None
        best = self._most_mixed() if self._relaxed is not None else None
        if best is not None:
            return best
        gradient = int(np.argmax(several))
        return Split(gradient, np.arange(self.allowed.shape[1]) == np.argmax(self.allowed[gradient]))

    def _most_mixed(self) -> Split | None:
        assert self._relaxed is not None
        lanes, (lambdas, mu, _), shares = self.lanes, self._relaxed, self._shares()
        late = lambdas.cumsum(axis=1)[:, :, None]
        early = lambdas.sum() - late.sum(axis=0) + lambdas.sum(axis=0)[:, None]
        best, found = ZERO_TOL, None
        for worth in (early * lanes.encode, mu * lanes.error, *(late * (lanes.busy + lanes.launch))):
            mean = (shares * worth).sum(axis=1, keepdims=True)
            spread = (shares * np.abs(worth - mean)).sum(axis=1) / _UNIT
            gradient = int(np.argmax(spread))
            low = worth[gradient] <= mean[gradient]
            here = self.allowed[gradient]
            if spread[gradient] > best and (here & low).any() and (here & ~low).any():
                best, found = spread[gradient], Split(gradient, low)
        return found

    def _shares(self) -> Floats:
        """(n, m) how much of each option the relaxation takes."""
        assert self._relaxed is not None
        rows, places = np.nonzero(self.allowed)
        by_label = np.zeros((len(self.allowed), int(self.lanes.labels.max()) + 1))
        for tail, head, label, share in zip(
            self.arcs.tail, self.arcs.head, self.arcs.label, self._relaxed.shares, strict=True
        ):
            by_label[tail:head, label] += share
        shares = np.zeros(self.allowed.shape)
        shares[rows, places] = by_label[rows, self.lanes.labels[rows, places]]
        return shares

    @cached_property
    def _relaxed(self) -> _Relaxed | None:
        """None where nothing keeps the budget."""
        lanes, arcs, (count, n) = self.lanes, self.arcs, self.lanes.busy.shape[:2]
        k, columns, one = len(arcs.tail), np.arange(len(arcs.tail)), eye_array(n)
        starts = csr_array((np.ones(k), (arcs.tail, columns)), shape=(n, k))
        ends = csr_array((np.ones(k), (arcs.head - 1, columns)), shape=(n, k))
        long = arcs.head - arcs.tail
        within = np.arange(long.sum()) - np.repeat(long.cumsum() - long, long) + np.repeat(arcs.tail, long)
        by = np.repeat(columns, long)
        waits = csr_array((arcs.ready[by] / _UNIT, (within, by)), shape=(n, k))
        # Columns: messages; encoding up to each gradient; what is left of each lane from it on; time.
        none = csr_array((n, n))
        equal = [hstack([starts - eye_array(n, k=-1) @ ends, *[none] * (1 + count), csr_array((n, 1))])]
        encode = starts * (arcs.encode / _UNIT)
        equal.append(hstack([-encode, one - eye_array(n, k=-1), *[none] * count, csr_array((n, 1))]))
        most = []
        for s in range(count):
            others = [one - eye_array(n, k=1) if s == t else none for t in range(count)]
            equal.append(hstack([-(ends * (arcs.busy[s] / _UNIT)), none, *others, csr_array((n, 1))]))
            others = [one if s == t else none for t in range(count)]
            most.append(hstack([waits, one, *others, csr_array(-np.ones((n, 1)))]))
        size, right = k + n * (1 + count) + 1, np.zeros(count * n)
        cost, upper = np.zeros(size), np.full(size, np.inf)
        errors = np.concatenate((arcs.error / _UNIT, np.zeros(size - k)))
        if not lanes.timed:
            cost, upper[-1] = errors, lanes.time_most / _UNIT
        else:
            cost[-1] = 1.0
            if lanes.error_most is not None:
                most.append(csr_array(errors[None]))
                right = np.append(right, lanes.error_most / _UNIT)
        first = np.zeros(n * (2 + count))
        first[0] = 1.0
        bounds = np.stack((np.zeros(size), upper), axis=1)
        found = linprog(cost, vstack(most), right, vstack(equal), first, bounds, method="highs")
        if found.status != 0:
            return None
        multipliers = np.maximum(0.0, -found.ineqlin.marginals)
        mu = 1.0 if not lanes.timed else float(multipliers[count * n :].sum())
        return _Relaxed(multipliers[: count * n].reshape(count, n), mu, found.x[:k])


def whole(lambdas: Floats, mu: float) -> Price:
    """Prices in whole numbers: weights (lanes, n), and of the error."""
    scale = MOST_PRICE / max(lambdas.sum(), mu)
    # A little less than all, so that what is rounded up does not exceed it.
    return np.rint(lambdas * (scale * (1 - 1e-5))).astype(np.int64), int(mu * scale)
