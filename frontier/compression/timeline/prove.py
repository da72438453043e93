"""Writes proofs by labels: parts of the plans, and for each the prices at which its labels are few."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from ddlopt.certificates.compression.label_proof.certificate import LabelCertificate
from ddlopt.certificates.compression.label_proof.labels import Price, TooManyError, count_labels
from ddlopt.certificates.compression.label_proof.lanes import Lanes, Marks
from ddlopt.certificates.compression.label_proof.parts import Parting
from ddlopt.certificates.compression.timeline.certificate import TimelineCertificate
from ddlopt.frontier.compression.timeline.label_setting.prices import Pricing, Split
from ddlopt.frontier.compression.timeline.lane_prices import LanePricing, whole
from ddlopt.models.compression.family import CompressionAnswer, CompressionProblem
from ddlopt.models.compression.timeline.choices import as_timeline
from ddlopt.models.compression.timeline.instance import CompressionInstance
from ddlopt.models.errors import InfeasibleError, RefutedError

_MOST = (20_000, 600_000)
"""Labels of a part; with more it is parted: at first, and once the parts are many.

Of ``bert-large-n8x8-nvlink-25g-budget`` the relaxation of hundreds of parts is hardly nearer to the claim than that of
the first ones, the labels of which are only some times as many."""
_MOST_PARTS = 500
"""Parts with few labels after which it begins anew with many; trees that few labels close have hundreds."""
_OF_LANES, _OF_MORE = (600_000, 300), (2_000, 10)
"""Labels of a part, and parts, of lanes where labels have at most two figures beside the encoding, or more; a tree over
a formulation does what is left."""
_INHERITED = 6
"""Prices of the whole that a part looks at beside its own."""


def prove(
    instance: CompressionProblem, solution: CompressionAnswer, target: Fraction, expired: Callable[[], bool]
) -> LabelCertificate | None:
    """The certificate that proves ``target``; None where there is none in time."""
    return prove_labels(TimelineCertificate, instance, target, expired)


def prove_labels(
    kind: type[LabelCertificate],
    instance: CompressionProblem,
    target: Fraction,
    expired: Callable[[], bool],
    timeline: CompressionInstance | None = None,
) -> LabelCertificate | None:
    """The same for whatever has a timeline, by a certificate of its ``kind``.

    Parameters
    ----------
    timeline : CompressionInstance, optional
        Where prices are looked for; by default that of the instance.
    """
    if target <= 0:
        return None
    lanes = kind(instance.name, instance.digest, target, [], []).lanes(instance)
    search = _Search(as_timeline(instance) if timeline is None else timeline, lanes, expired)
    try:
        done = search.run()
    except RefutedError:
        return None  # rounded down, some plan is better than the target
    if not done:
        return None
    return kind(instance.name, instance.digest, target, search.written(), search.nodes)


class _Prices(Protocol):
    """Of a part of the plans; ``split`` says how to part it."""

    def first(self, others: bool) -> Iterable[Price]:
        """The best for all of them, and ``others`` that may be good for some labels."""

    @property
    def split(self) -> Split | None:
        """None if every gradient has one option."""


class _WirePrices:
    """Those that label setting finds, in whole numbers."""

    def __init__(self, timeline: CompressionInstance, lanes: Lanes, allowed: Marks) -> None:
        self.lanes = lanes
        wider = ((0, 0), (0, timeline.most_options - allowed.shape[1]))  # menus that no gradient has
        self.pricing = Pricing(timeline, np.pad(allowed, wider))

    def first(self, others: bool) -> Iterable[Price]:
        """See :class:`_Prices`."""
        try:
            found = self.pricing.first(others)
        except InfeasibleError:
            found = [self.pricing.in_time()]
        for prices in found:
            lambdas = prices.lambdas * 2.0**self.lanes.time_exponent
            mu = prices.mu * 2.0**self.lanes.error_exponent if self.lanes.error_most is not None else 0.0
            yield whole(lambdas[None], mu)

    @property
    def split(self) -> Split | None:
        """See :class:`_Prices`."""
        return self.pricing.split


@dataclass
class _Search:
    timeline: CompressionInstance
    lanes: Lanes
    expired: Callable[[], bool]
    prices: list[Price] = field(default_factory=list)
    nodes: list[list[Any]] = field(default_factory=list)
    _best: list[int] = field(default_factory=list)

    def run(self) -> bool:
        """Part the plans until every part is proven; False when the time is up."""
        limits: Iterable[tuple[int, float]] = zip(_MOST, (_MOST_PARTS, math.inf), strict=True)
        if self.timeline.lanes:
            limits = [_OF_LANES if len(self.lanes.busy) + (self.lanes.error_most is not None) <= 2 else _OF_MORE]
        for most, parts in limits:
            self.prices, self.nodes = [], []
            if self._parted(most, parts):
                return True
            if self.expired():
                return False
        return False

    def _parted(self, most: int, parts: float) -> bool:
        """The same with at most ``most`` labels each; False also when there are that many ``parts``."""
        parting = Parting(self.lanes)
        stack: list[tuple[Marks, list[int]]] = [(parting.whole, [])]
        while stack:
            if len(self.nodes) >= parts:
                return False
            allowed, inherited = stack.pop()
            if not allowed.any(axis=1).all():
                self.nodes.append(["labels", []])
                continue
            pricing = self._pricing(allowed)
            chosen = self._proven(pricing, allowed, inherited, most)
            if self.expired():
                return False
            if chosen is not None:
                self.nodes.append(["labels", sorted(set(chosen))])
                continue
            split = pricing.split
            if split is None:
                return False
            options = np.flatnonzero(split.low[: allowed.shape[1]] & allowed[split.gradient])
            self.nodes.append(["part", split.gradient, options.tolist()])
            some, others = parting.parts(allowed, split.gradient, options.tolist())
            stack += [(others, self._best[:_INHERITED]), (some, self._best[:_INHERITED])]
        return True

    def _pricing(self, allowed: Marks) -> _Prices:
        if self.timeline.lanes:
            return LanePricing(self.lanes, allowed)
        return _WirePrices(self.timeline, self.lanes, allowed)

    def _proven(self, pricing: _Prices, allowed: Marks, inherited: list[int], most: int) -> list[int] | None:
        """Prices at which the labels die; None if they are too many."""
        begin = len(self.prices)
        self.prices += pricing.first(others=not inherited)
        self._best = [*range(begin, len(self.prices)), *inherited]
        try:
            count_labels(self.lanes, allowed, [self.prices[place] for place in self._best], self.expired, most)
        except TooManyError:
            return None
        return self._best

    def written(self) -> list[list[Any]]:
        """The prices as the file has them."""
        by_gradient = [(lambdas.T.ravel(), mu) for lambdas, mu in self.prices]
        return [[np.flatnonzero(each).tolist(), each[each > 0].tolist(), mu] for each, mu in by_gradient]
