"""The file of a proof by labels, read as if an enemy had written it."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from ddlopt.certificates.compression.label_proof.labels import MOST_PRICE, Price, count_labels
from ddlopt.certificates.compression.label_proof.lanes import Lanes
from ddlopt.certificates.compression.label_proof.parts import cases
from ddlopt.certificates.own import OwnCertificate
from ddlopt.models.errors import RefutedError

_MOST_NODES, _MOST_PRICES = 100_000, 4_000
"""Of a file: honest ones have hundreds."""


@dataclass(frozen=True)
class LabelCertificate(OwnCertificate):
    """A proof that no plan is better than ``claim``.

    Parameters
    ----------
    prices : list of [places, λ at these, μ]
        Place g · L + l is of gradient g on the l-th of L lanes.
    nodes : list
        The cases, each before its parts: ``["part", i, options]`` parts gradient i's options into those named by their
        places and the others; ``["labels", prices]`` says with which of the prices no label is left alive.
    """

    format: ClassVar[str] = "ddlopt label certificate"
    kind: ClassVar[str] = "labels"
    says: ClassVar[str] = "of the instance, by labels and prices in whole numbers"

    prices: list[list[Any]]
    nodes: list[list[Any]]

    @classmethod
    def fault(cls, data: dict[str, Any]) -> str | None:
        """Types, ranges and lengths."""
        prices, nodes = data["prices"], data["nodes"]
        if not isinstance(prices, list) or len(prices) > _MOST_PRICES:
            return f"prices is a list of at most {_MOST_PRICES}"
        for place, price in enumerate(prices):
            if not _is_price(price):
                return f"prices[{place}] is not [places in order, whole weights of them, μ], weights and μ at most 2^26"
        if not isinstance(nodes, list) or not 1 <= len(nodes) <= _MOST_NODES:
            return f"nodes is a list of 1 to {_MOST_NODES}"
        for place, node in enumerate(nodes):
            if not _is_node(node, len(prices)):
                return f'nodes[{place}] is neither ["part", gradient, options] nor ["labels", places of prices]'
        return None

    def lanes(self, instance: Any) -> Lanes:
        """The instance and the claim in whole numbers."""
        raise NotImplementedError

    def check(self, instance: Any, expired: Callable[[], bool]) -> int:
        """Raise RefutedError unless every case dies."""
        if self.claim <= 0:
            return 0  # no time and no error is below
        lanes = self.lanes(instance)
        count, n = len(lanes.busy), len(lanes.ready)
        prices: list[Price] = []
        for places, weights, mu in self.prices:
            if places and places[-1] >= n * count:
                raise RefutedError(f"a price is of place {places[-1]}, but there are {n} gradients on {count} lanes")
            if mu and lanes.error_most is None:
                raise RefutedError("a price is of errors, which have no budget")
            lambdas = np.zeros(n * count, dtype=np.int64)
            lambdas[places] = weights
            prices.append((lambdas.reshape(n, count).T, mu))
        for allowed, chosen in cases(lanes, self.nodes):
            count_labels(lanes, allowed, [prices[place] for place in chosen], expired)
            if expired():
                break
        return len(self.nodes)


def _is_whole(value: Any, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


def _are_places(value: Any) -> bool:
    if not isinstance(value, list) or not all(_is_whole(each, 2**31) for each in value):
        return False
    return all(a < b for a, b in pairwise(value))


def _is_price(price: Any) -> bool:
    match price:
        case [places, [*weights], mu] if _are_places(places) and len(places) == len(weights):
            right = _is_whole(mu, MOST_PRICE) and all(_is_whole(each, MOST_PRICE) for each in weights)
            return right and sum(weights) <= MOST_PRICE
    return False


def _is_node(node: Any, prices: int) -> bool:
    match node:
        case ["part", gradient, options]:
            return _is_whole(gradient, 2**31) and _are_places(options) and bool(options)
        case ["labels", places]:
            return _are_places(places) and (not places or places[-1] < prices)
    return False
