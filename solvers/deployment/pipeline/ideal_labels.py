"""Sequences of stages between ideals: compiled over relaxed options, then held to exact ones."""

from typing import Any

import numpy as np

from ddlopt.models.deployment.pipeline.instance import PipelineInstance
from ddlopt.models.deployment.pipeline.stages import Stages, members
from ddlopt.models.errors import NoSolutionError
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.deployment.pipeline.chains import Chains, Piece
from ddlopt.solvers.deployment.pipeline.kernels import Barred, Network, State, extend
from ddlopt.solvers.heuristic import Clock

_BLOCK = 64
"""Ideals between two looks at the clock: of thousands, each takes milliseconds."""
_LEAN = 32
"""Samples in flight up to which least memories are known; beyond, the sum of that many is too small, but not wrong."""


class LabelChains(Chains):
    """The same questions as :class:`Chains`, for options whose time grows with the samples in flight.

    Parameters
    ----------
    stages : Stages
    ideals : tuple of int
        From the empty one to the whole, the smaller ones first.
    clock : Clock
    """

    def __init__(self, stages: Stages, ideals: tuple[int, ...], clock: Clock) -> None:
        super().__init__(stages, ideals, clock)
        self.place = {ideal: number for number, ideal in enumerate(ideals)}
        self.network = _network(stages, ideals, self.most)
        self.barred: list[tuple[tuple[int, int, int, int, int], float]] = []

    def within(self, limit_s: float) -> list[Piece] | None:
        """A chain in which every stage takes less than ``limit_s``; None if there is none.

        A chain of relaxed options is held to exact ones; stages that are slower are barred, and the next one is sought.

        Raises
        ------
        NoSolutionError
            If the time is up.
        """
        while True:
            chain = self._relaxed(limit_s)
            if chain is None:
                return None
            slow = [piece for piece in chain if self.stages.load_s(*piece) >= limit_s]
            if not slow:
                return chain
            self._bar(chain, slow)

    def _relaxed(self, limit_s: float) -> list[Piece] | None:
        """A chain by the relaxation."""
        shape = len(self.ideals), self.most + 1
        devices = self.stages.instance.devices
        need = np.full(shape, devices + 1, dtype=np.int32)
        need[-1, 0] = 0
        state = State(need, np.zeros(shape, np.int32), np.zeros(shape, np.int32))
        stages = np.array([key for key, _ in self.barred], dtype=np.int64).reshape(-1, 5)
        barred = Barred(stages, np.array([load for _, load in self.barred], dtype=np.float64))
        spare = np.array(self.spare(limit_s), dtype=np.int64)
        for high in range(len(self.ideals) - 1, 0, -_BLOCK):
            if self.clock.expired:
                raise NoSolutionError("the time is up")
            extend(self.network, state, barred, spare, limit_s, max(1, high - _BLOCK + 1), high)
        if need[0].min() > devices:
            return None
        return self._pieces(state)

    def _pieces(self, state: State) -> list[Piece]:
        place, total, found = 0, int(np.argmin(state.need[0])), []
        instance = self.stages.instance
        while place != len(self.ideals) - 1:
            behind, degrees = int(state.behind[place, total]), int(state.degrees[place, total])
            tensor, number = divmod(degrees, len(instance.replicas))
            d = instance.replicas[number]
            layers = self.ideals[behind] & ~self.ideals[place]
            found.append(Piece(layers, instance.tensors[tensor], d, -(-total // d)))
            place, total = behind, total - d
        return found

    def _bar(self, chain: list[Piece], slow: list[Piece]) -> None:
        instance, ahead = self.stages.instance, 0
        for piece in chain:
            behind = ahead | piece.layers
            if piece in slow:
                degrees = instance.tensors.index(piece.tensor), instance.replicas.index(piece.replicas)
                key = self.place[ahead], self.place[behind], *degrees, piece.flying
                self.barred.append((key, self.stages.load_s(*piece)))
            ahead = behind


def _network(stages: Stages, ideals: tuple[int, ...], most: int) -> Network:
    instance = stages.instance
    rows, first = _options(instance)
    table = np.array(rows, dtype=np.float64).reshape(-1, 4)
    table[:, 1] *= 4 / instance.micro_batches / instance.bandwidth_bytes_per_s
    fastest = np.zeros((len(instance.tensors), instance.size))
    flying = np.arange(1, min(most, _LEAN) + 1)
    lean = np.zeros((len(instance.tensors), len(flying), instance.size))
    missing = np.zeros(fastest.shape, dtype=np.int64)
    for degree in range(len(instance.tensors)):
        for layer in range(instance.size):
            own = table[first[layer, degree] : first[layer + 1, degree]]
            missing[degree, layer] = not len(own)
            if len(own):
                fastest[degree, layer] = own[:, 0].min()
                lean[degree, :, layer] = (own[:, 2] * flying[:, None] + own[:, 3]).min(axis=1)
    count = max(len(menu.options) for layer in instance.layers for menu in layer.menus)
    gathered = np.zeros((len(instance.edges), len(instance.tensors), count))
    scattered = np.zeros(gathered.shape)
    for number, edge in enumerate(instance.edges):
        for degree, tensor in enumerate(instance.tensors):
            for place, option in enumerate(instance.layers[edge.user].menu(tensor)):
                gathered[number, degree, place] = dict(option.gathered).get(edge.maker, 0.0)
            for place, option in enumerate(instance.layers[edge.maker].menu(tensor)):
                scattered[number, degree, place] = dict(option.scattered).get(edge.user, 0.0)
    twice = 2 / instance.bandwidth_bytes_per_s
    inside = _bits(ideals, instance.size)
    words = np.zeros((len(ideals), -(-instance.size // 64)), dtype=np.uint64)
    for layer in range(instance.size):
        words[:, layer // 64] |= inside[:, layer].astype(np.uint64) << np.uint64(layer % 64)
    time, reduced, kept, fixed = (np.ascontiguousarray(column) for column in table.T)
    return Network(
        first,
        time,
        reduced,
        kept,
        fixed,
        np.array([edge.maker for edge in instance.edges], dtype=np.int64),
        np.array([edge.user for edge in instance.edges], dtype=np.int64),
        np.array([edge.size_bytes * twice for edge in instance.edges], dtype=np.float64),
        gathered * twice,
        scattered * twice,
        np.array(instance.tensors, dtype=np.int64),
        np.array(instance.replicas, dtype=np.int64),
        np.ascontiguousarray(fastest @ inside.T),
        np.ascontiguousarray(missing @ inside.T.astype(np.int64)),
        np.ascontiguousarray(lean @ inside.T),
        words,
        instance.devices,
        most,
        # A plan that the check takes for one is not missed.
        stages.memory / stages.memory_scale * (1 + ROUNDING),
    )


def _options(instance: PipelineInstance) -> tuple[list[tuple[float, ...]], Any]:
    """Figures of all options, degree by degree and layer by layer, and the first one of each."""
    rows: list[tuple[float, ...]] = []
    first = np.zeros((instance.size + 1, len(instance.tensors)), dtype=np.int64)
    for degree, tensor in enumerate(instance.tensors):
        for place, layer in enumerate(instance.layers):
            first[place, degree] = len(rows)
            for option in layer.menu(tensor):
                rows.append((option.time_s, option.weight_bytes, option.kept_bytes, option.fixed_bytes))
        first[instance.size, degree] = len(rows)
    return rows, first


def _bits(ideals: tuple[int, ...], size: int) -> Any:
    """A row for each ideal, with a one for each of its layers."""
    found = np.zeros((len(ideals), size))
    for row, ideal in enumerate(ideals):
        found[row, members(ideal)] = 1.0
    return found
