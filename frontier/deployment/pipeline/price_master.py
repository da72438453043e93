"""Prices of layers by a linear program over stages and sequences that were dear."""

from collections.abc import Callable
from typing import Any

from ddlopt.frontier.deployment.pipeline.prices import Stage
from ddlopt.frontier.engines.columns import INF, RestrictedMaster
from ddlopt.models.errors import SolverError


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
        self._program = RestrictedMaster("stages and sequences", {"threads": 1})
        for _ in range(size):
            self._program.add(0.0, upper=float(size))
        self._program.add(1.0)
        self._program.add_row(float(size), float(size), range(size), [1.0] * size)
        self._kinds: dict[Stage, int] = {}
        self._seen: set[tuple[Any, ...]] = set()
        self._sets: list[tuple[Stage, Any]] = []

    def learn(self, stages: list[Stage], sets: dict[Stage, Any]) -> None:
        """Take a sequence, and for its kinds a set of layers each, as indices."""
        for kind in sets:
            if kind not in self._kinds:
                self._kinds[kind] = self._program.add(0.0)
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
            self._program.add_row(0.0, INF, columns, values)

    def _holds(self, kind: Stage, other: Stage, layers: Any) -> None:
        if not self._fits(kind, other, layers):
            return
        key = kind, layers.tobytes()
        if key not in self._seen:
            self._seen.add(key)
            self._program.add_row(0.0, INF, [self._kinds[kind], *layers.tolist()], [1.0, *([-1.0] * len(layers))])

    def prices(self, near: Any, radius: float) -> tuple[Any, float] | None:
        """The prices, none further from others than a radius, and what the dearest sequence known is worth."""
        for layer in range(self.size):
            low, high = max(0.0, near[layer] - radius), near[layer] + radius
            self._program.set_bounds(layer, low, high)
        try:
            found = self._program.solve().values
        except SolverError:
            return None
        return found[: self.size], float(found[self.size])
