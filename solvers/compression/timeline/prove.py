"""Writes proofs for one wire: parts of the plans, and for each the prices at which its labels are few."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from ddlopt.models.compression.family import CompressionAnswer, CompressionProblem
from ddlopt.models.compression.label_proof.certificate import LabelCertificate
from ddlopt.models.compression.label_proof.labels import MOST_PRICE, Price, TooManyError, count_labels
from ddlopt.models.compression.label_proof.parts import Parting
from ddlopt.models.compression.label_proof.wire import Marks, Wire
from ddlopt.models.compression.timeline.certificate import TimelineCertificate
from ddlopt.models.compression.timeline.choices import as_timeline, why_no_wire
from ddlopt.models.compression.timeline.instance import CompressionInstance
from ddlopt.models.errors import InfeasibleError, RefutedError
from ddlopt.solvers.compression.timeline.label_setting.prices import Pricing
from ddlopt.solvers.compression.timeline.label_setting.search import Prices

_MOST = (20_000, 600_000)
"""Labels of a part; with more it is parted: at first, and once the parts are many.

Of ``bert-large-n8x8-nvlink-25g-budget`` the relaxation of hundreds of parts is hardly nearer to the claim than that of
the first ones, the labels of which are only some times as many."""
_MOST_PARTS = 500
"""After so many with few labels it begins anew with many; trees that few labels close have hundreds."""
_INHERITED = 6
"""Prices of the whole that a part looks at beside its own."""


def prove(
    instance: CompressionProblem, solution: CompressionAnswer, target: Fraction, expired: Callable[[], bool]
) -> LabelCertificate | None:
    """The certificate that proves ``target``; None where there is none in time."""
    return prove_labels(TimelineCertificate, instance, target, expired)


def prove_labels(
    kind: type[LabelCertificate], instance: CompressionProblem, target: Fraction, expired: Callable[[], bool]
) -> LabelCertificate | None:
    """The same for whatever has a timeline, by a certificate of its ``kind``."""
    if why_no_wire(instance) or target <= 0:
        return None
    wire = kind(instance.name, instance.digest, target, [], []).wire(instance)
    search = _Search(as_timeline(instance), wire, expired)
    try:
        done = search.run()
    except RefutedError:
        return None  # rounded down, some plan is better than the target
    if not done:
        return None
    return kind(instance.name, instance.digest, target, search.written(), search.nodes)


@dataclass
class _Search:
    timeline: CompressionInstance
    wire: Wire
    expired: Callable[[], bool]
    prices: list[Price] = field(default_factory=list)
    nodes: list[list[Any]] = field(default_factory=list)
    _best: list[int] = field(default_factory=list)

    def run(self) -> bool:
        """Part the plans until every part is proven; False when the time is up."""
        for most, parts in zip(_MOST, (_MOST_PARTS, math.inf), strict=True):
            self.prices, self.nodes = [], []
            if self._parted(most, parts):
                return True
            if self.expired():
                return False
        return False

    def _parted(self, most: int, parts: float) -> bool:
        """The same with at most so many labels each; False also when there are that many ``parts``."""
        parting = Parting(self.wire)
        wider = ((0, 0), (0, self.timeline.most_options - parting.whole.shape[1]))  # menus that no gradient has
        stack: list[tuple[Marks, list[int]]] = [(parting.whole, [])]
        while stack:
            if len(self.nodes) >= parts:
                return False
            allowed, inherited = stack.pop()
            if not allowed.any(axis=1).all():
                self.nodes.append(["labels", []])
                continue
            pricing = Pricing(self.timeline, np.pad(allowed, wider))
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

    def _proven(self, pricing: Pricing, allowed: Marks, inherited: list[int], most: int) -> list[int] | None:
        """Prices at which the labels die; None if they are too many."""
        try:
            first = pricing.first(others=not inherited)
        except InfeasibleError:
            first = [pricing.in_time()]
        self._best = [*(self._place(each) for each in first), *inherited]
        try:
            count_labels(self.wire, allowed, [self.prices[place] for place in self._best], self.expired, most)
        except TooManyError:
            return None
        return self._best

    def _place(self, prices: Prices) -> int:
        """Where prices are in whole numbers; they are put there."""
        lambdas = prices.lambdas * 2.0**self.wire.time_exponent
        mu = prices.mu * 2.0**self.wire.error_exponent if self.wire.error_most is not None else 0.0
        scale = MOST_PRICE / max(lambdas.sum(), mu)
        # A little less than all, so that what is rounded up does not exceed it.
        whole = np.rint(lambdas * (scale * (1 - 1e-5))).astype(np.int64), int(mu * scale)
        self.prices.append(whole)
        return len(self.prices) - 1

    def written(self) -> list[list[Any]]:
        """The prices as the file has them."""
        return [[np.flatnonzero(lambdas).tolist(), lambdas[lambdas > 0].tolist(), mu] for lambdas, mu in self.prices]
