"""An instance of pipelines and a claim, in whole numbers: times and memory are rounded down."""

from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.pipeline.instance import LayerOption, PipelineInstance
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.tolerances import let_pass

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

MOST_IDEALS = 20_000
"""Beyond, pairs of them take longer than anybody waits."""
ROOM = 2**36
"""A device's memory in units, and one more is beyond it."""
FINE = 2**8
"""Parts of a unit of memory: of samples in flight there may be hundreds."""
_GOAL_BITS, _LEAST_BITS = 36, 24
"""Binary digits of the claim in units of time; with fewer, the rounding of thousands of terms would lose too much."""
_SUM_BITS = 60
"""Of all that is added up anywhere."""
_LEAN = 32
"""Samples in flight up to which least memories are known; for more, the sum of that many holds as well."""


class Tables(NamedTuple):
    """Arrays of whole numbers; of tensor degrees t, replicas r, layers l, options o, edges e and ideals i the numbers.

    Parameters
    ----------
    first : (t, l + 1) array
        First option of a layer at a degree; its last one is before that of the next layer.
    time : (r, o) array
        Of a sample on all replicas together, without transfers to other stages; a stage may take less than ``goal`` for
        each replica.
    kept, fixed : (o,) arrays
        Memory for a sample in flight, and besides, in fine parts.
    maker, user, moved : (e,) arrays
        Layers, and the time of a sample if they are in two stages.
    gathered, scattered : (e, t, options of a layer) arrays
        Time besides, for an option of the user and of the maker.
    tensors, replicas : arrays
        Ascending.
    fastest : (t, i) array
        Sum over layers of what the fastest options take on one replica.
    missing : (t, i) array
        Layers that have no menu of the degree.
    lean : (t, y, i) array
        Sum over layers of the least memory with y + 1 samples in flight.
    words : (i, w) array
        Ideals as bits, the smaller ones first.
    left : (i,) array
        Devices that stages behind an ideal may have at most, because those ahead need the others.
    most : int
        Replicas of all stages.
    goal : int
        The claim.
    """

    first: Ints
    time: Ints
    kept: Ints
    fixed: Ints
    maker: Ints
    user: Ints
    moved: Ints
    gathered: Ints
    scattered: Ints
    tensors: Ints
    replicas: Ints
    fastest: Ints
    missing: Ints
    lean: Ints
    words: Words
    left: Ints
    most: int
    goal: int


class _Units:
    """Times and memory of an instance in units of a claim, rounded down."""

    def __init__(self, instance: PipelineInstance, claim: Fraction) -> None:
        self.most = min(instance.devices, instance.micro_batches)
        terms = 2 * instance.size + 4 * len(instance.edges)
        bits = min(_GOAL_BITS, _SUM_BITS - (terms * self.most).bit_length())
        if bits < _LEAST_BITS or self.most.bit_length() + (ROOM * FINE).bit_length() > _SUM_BITS:
            raise NotApplicableError(f"'{instance.name}' is too large: sums of whole numbers might overflow")
        self.claim, self.goal = claim, 1 << bits
        self.rate = Fraction(instance.bandwidth_bytes_per_s)
        # What the check lets pass as rounding is a plan too.
        self.room = let_pass(Fraction(instance.memory_bytes))

    def time(self, seconds: Fraction) -> int:
        """What takes as long as any stage may is as good as what takes longer."""
        return min(self.most * self.goal, int(seconds / self.claim * self.goal))

    def sent(self, size_bytes: float) -> int:
        """Time of what is sent forward, and its gradient back."""
        return self.time(2 * Fraction(size_bytes) / self.rate)

    def parts(self, size_bytes: float) -> int:
        """Fine parts of memory; of what is beyond the room just one unit more than it has."""
        return min((ROOM + 1) * FINE, int(Fraction(size_bytes) / self.room * (ROOM * FINE)))


def tables_of(instance: PipelineInstance, claim: Fraction) -> Tables:
    """The tables of an instance for a claim above 0.

    Raises
    ------
    NotApplicableError
        If there are too many ideals, or numbers might overflow.
    """
    ideals, units = ideals_of(instance), _Units(instance, claim)
    rows: list[LayerOption] = []
    first = np.zeros((len(instance.tensors), instance.size + 1), dtype=np.int64)
    for degree, tensor in enumerate(instance.tensors):
        for place, layer in enumerate(instance.layers):
            first[degree, place] = len(rows)
            rows += layer.menu(tensor)
        first[degree, instance.size] = len(rows)
    own = [Fraction(option.time_s) for option in rows]
    reduced = [4 * Fraction(option.weight_bytes) / instance.micro_batches / units.rate for option in rows]
    time = [
        [units.time(one + (d - 1) * more) for one, more in zip(own, reduced, strict=True)] for d in instance.replicas
    ]
    kept, fixed = (
        [units.parts(option.kept_bytes) for option in rows],
        [units.parts(option.fixed_bytes) for option in rows],
    )
    inside = np.array([[ideal >> layer & 1 for layer in range(instance.size)] for ideal in ideals], dtype=np.int64)

    def least(figures: list[int], without: int = 0) -> Ints:
        """By degree and ideal, the sum over layers of the least figure of their options, or ``without`` any."""
        spans = [list(pairwise(each)) for each in first.tolist()]
        found = [[min(figures[start:end], default=without) for start, end in each] for each in spans]
        return np.array(found, dtype=np.int64).reshape(len(first), instance.size) @ inside.T

    lean = [
        least([memory(a, b, flying) for a, b in zip(kept, fixed, strict=True)])
        for flying in range(1, min(_LEAN, units.most) + 1)
    ]
    words = np.zeros((len(ideals), -(-instance.size // 64)), dtype=np.uint64)
    for bit in range(instance.size):
        words[:, bit // 64] |= inside[:, bit].astype(np.uint64) << np.uint64(bit % 64)
    return Tables(
        first,
        np.array(time, dtype=np.int64).reshape(len(instance.replicas), len(rows)),
        _array(kept),
        _array(fixed),
        _array(edge.maker for edge in instance.edges),
        _array(edge.user for edge in instance.edges),
        _array(units.sent(edge.size_bytes) for edge in instance.edges),
        *_besides(instance, units),
        _array(instance.tensors),
        _array(instance.replicas),
        np.ascontiguousarray(least(time[0])),
        np.ascontiguousarray(least([0] * len(rows), without=1)),
        np.ascontiguousarray(np.stack(lean, axis=1)),
        words,
        _left(instance, ideals, claim),
        units.most,
        units.goal,
    )


def _besides(instance: PipelineInstance, units: _Units) -> tuple[Ints, Ints]:
    """What is sent inside a stage if an edge comes from another one, or leads to it, by edge, degree and option."""
    options = max(len(menu.options) for layer in instance.layers for menu in layer.menus)
    gathered = np.zeros((len(instance.edges), len(instance.tensors), options), dtype=np.int64)
    scattered = np.zeros_like(gathered)
    for number, edge in enumerate(instance.edges):
        for degree, tensor in enumerate(instance.tensors):
            for place, option in enumerate(instance.layers[edge.user].menu(tensor)):
                gathered[number, degree, place] = units.sent(dict(option.gathered).get(edge.maker, 0.0))
            for place, option in enumerate(instance.layers[edge.maker].menu(tensor)):
                scattered[number, degree, place] = units.sent(dict(option.scattered).get(edge.user, 0.0))
    return gathered, scattered


def memory(kept: int, fixed: int, flying: int) -> int:
    """Units of memory, rounded down, from fine parts; of what is beyond the room just one more than it has."""
    return min(ROOM + 1, (kept * flying + fixed) // FINE)


def ideals_of(instance: PipelineInstance) -> list[int]:
    """Sets of layers with all that come before them, bit by bit, the smaller ones first.

    Raises
    ------
    NotApplicableError
        If there are too many.
    """
    before = [0] * instance.size
    for edge in instance.edges:
        before[edge.user] |= 1 << edge.maker
    level, found = {0}, [0]
    while len(found) <= MOST_IDEALS:
        level = {
            ideal | 1 << layer
            for ideal in level
            for layer, needed in enumerate(before)
            if not ideal >> layer & 1 and not needed & ~ideal
        }
        if not level:
            return found
        found += sorted(level)
    raise NotApplicableError(f"'{instance.name}' has more than {MOST_IDEALS} ideals")


def _left(instance: PipelineInstance, ideals: list[int], claim: Fraction) -> Ints:
    r"""By ideal, what is left of the devices for stages behind it.

    A stage with degrees d and t that takes less than T each has :math:`\sum_v p_v < d T`, so :math:`d\,t\,T >
    \sum_v t\,p_v`. Together, stages ahead of an ideal that is not empty have more devices than its layers' least
    :math:`t\,p_v / T`.
    """
    work = [
        min(menu.tensor * Fraction(option.time_s) for menu in layer.menus for option in menu.options) / claim
        for layer in instance.layers
    ]
    parts = [int(each * 2**_SUM_BITS) for each in work]
    found = []
    for ideal in ideals:
        own = sum(each for layer, each in enumerate(parts) if ideal >> layer & 1)
        found.append(max(0, instance.devices - (own >> _SUM_BITS) - (ideal > 0)))
    return _array(found)


def _array(numbers: Iterable[Any]) -> Ints:
    return np.array(list(numbers), dtype=np.int64)
