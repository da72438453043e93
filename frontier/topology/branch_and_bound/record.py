"""The record of a proof, part by part, from which its certificate is put together."""

from graphlib import TopologicalSorter
from math import frexp
from typing import Any

import numpy as np

from ddlopt.certificates.topology.format import ELSEWHERE, IMAGE, DesignCertificate
from ddlopt.certificates.topology.format import FIRST_WEIGHT as WEIGHTS
from ddlopt.frontier.topology.branch_and_bound.bounds import Ints
from ddlopt.frontier.topology.branch_and_bound.tree import Log
from ddlopt.models.topology import TopologyInstance


class Record:
    """The words and weights of the proof so far, part by part; remembers nothing unless it is wanted."""

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted
        self.parts = 1
        self.words: dict[int, Any] = {}
        self.lengths: list[Any] = []
        self.prices: list[Any] = []
        self.images: list[list[int]] = []
        self._weights = 0

    def new_part(self) -> int:
        """A number for a part still to come."""
        self.parts += 1
        return self.parts - 1

    def add(self, part: int, log: Log) -> Any:
        """Keep what a dive logged; gives its words to fill in the numbers of further parts."""
        words = log.words[: log.used[0]].copy()
        if self.wanted:
            words[words <= WEIGHTS] -= self._weights
            self.lengths.append(log.lengths[: log.used[1]].copy())
            self.prices.append(log.prices[: log.used[1]].copy())
            self._weights += int(log.used[1])
            self.words[part] = words
        return words

    def image(self, part: int, origin: int, permutation: Ints) -> None:
        """The node of a part is the image of another's."""
        self.words[part] = np.array([IMAGE, len(self.images)], dtype=np.int32)
        self.images.append([origin, *permutation.tolist()])

    def certificate(self, instance: TopologyInstance, unit: float, z: int, width: int) -> DesignCertificate:
        """All of it, for z units; each part after those that it refers to."""
        n, order = instance.servers, self._in_order()
        images = np.array(self.images, dtype=np.int32).reshape(len(self.images), n + 1)
        number = np.empty(self.parts, dtype=np.int32)
        number[order] = np.arange(self.parts)
        images[:, 0] = number[images[:, 0]]
        words = np.concatenate([self.words[part] for part in order])
        elsewhere = np.flatnonzero(words == ELSEWHERE) + 1
        words[elsewhere] = number[words[elsewhere]]
        return DesignCertificate(
            instance.name,
            instance.digest,
            frexp(unit)[1] - 1,
            z,
            words,
            np.array([len(self.words[part]) for part in order], dtype=np.uint32),
            np.concatenate([np.zeros((0, n * n), np.uint16), *self.lengths]),
            np.concatenate([np.zeros((0, width), np.int64), *self.prices]),
            images,
        )

    def _in_order(self) -> list[int]:
        """The parts, each after those that it refers to; part 0, the root, is the last."""
        origin = [image[0] for image in self.images]
        before: TopologicalSorter[int] = TopologicalSorter()
        for part, words in self.words.items():
            elsewhere, images = (words[np.flatnonzero(words == word) + 1].tolist() for word in (ELSEWHERE, IMAGE))
            before.add(part, *elsewhere, *(origin[image] for image in images))
        return list(before.static_order())
