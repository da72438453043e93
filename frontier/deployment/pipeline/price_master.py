"""Prices of layers by a linear program over stages and sequences that were dear."""

from collections.abc import Callable
from typing import Any

import highspy
import numpy as np

from ddlopt.frontier.deployment.pipeline.prices import Stage
from ddlopt.solvers.backends.silent_highs import SilentHighs


class Master:
    """The prices, one on average, for which sequences known are worth least, not too far from good ones.

    The worth of a kind of stage is at least that of every set known that fits it, and the worth of a sequence is that
    of its kinds.

    Parameters
    ----------
    size : int
        Layers.
    fits : callable
        ``fits(stage, other, layers)``: whether layers of another stage can be those of a stage.
    """

    def __init__(self, size: int, fits: Callable[[Stage, Stage, Any], bool]) -> None:
        self.size, self._fits = size, fits
        self._highs = SilentHighs()
        self._highs.setOptionValue("threads", 1)
        nothing = np.zeros(0, dtype=np.int32), np.zeros(0)
        for _ in range(size):
            self._highs.addCol(0.0, 0.0, float(size), 0, *nothing)
        self._highs.addCol(1.0, 0.0, highspy.kHighsInf, 0, *nothing)
        every = np.arange(size, dtype=np.int32)
        self._highs.addRow(float(size), float(size), size, every, np.ones(size))
        self._kinds: dict[Stage, int] = {}
        self._seen: set[tuple[Any, ...]] = set()
        self._sets: list[tuple[Stage, Any]] = []

    def learn(self, stages: list[Stage], sets: dict[Stage, Any]) -> None:
        """Take a sequence, and for its kinds a set of layers each, as indices."""
        for kind in sets:
            if kind not in self._kinds:
                self._kinds[kind] = self.size + 1 + len(self._kinds)
                self._highs.addCol(0.0, 0.0, highspy.kHighsInf, 0, np.zeros(0, dtype=np.int32), np.zeros(0))
                for other, layers in self._sets:
                    self._holds(kind, other, layers)
        for kind, layers in sets.items():
            self._sets.append((kind, layers))
            for each in self._kinds:
                self._holds(each, kind, layers)
        line = tuple(sorted(stages))
        if line not in self._seen:
            self._seen.add(line)
            kinds = sorted(set(stages))
            columns = [self.size, *(self._kinds[kind] for kind in kinds)]
            values = [1.0, *(-float(stages.count(kind)) for kind in kinds)]
            self._row(columns, values)

    def _holds(self, kind: Stage, other: Stage, layers: Any) -> None:
        if not self._fits(kind, other, layers):
            return
        key = kind, layers.tobytes()
        if key not in self._seen:
            self._seen.add(key)
            self._row([self._kinds[kind], *layers.tolist()], [1.0, *([-1.0] * len(layers))])

    def _row(self, columns: list[int], values: list[float]) -> None:
        own = np.array(columns, dtype=np.int32)
        self._highs.addRow(0.0, highspy.kHighsInf, len(columns), own, np.array(values))

    def prices(self, near: Any, radius: float) -> tuple[Any, float] | None:
        """The prices, none further from others than a radius, and what the dearest sequence known is worth."""
        for layer in range(self.size):
            low, high = max(0.0, near[layer] - radius), near[layer] + radius
            self._highs.changeColBounds(layer, low, high)
        self._highs.run()
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        found = np.array(self._highs.getSolution().col_value)
        return found[: self.size], float(found[self.size])
