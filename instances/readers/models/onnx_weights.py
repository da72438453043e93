"""Which constants of an ONNX model training changes, as far as their numbers tell."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from ddlopt.instances.readers.models.onnx_constants import Values, array_of
from ddlopt.instances.readers.models.onnx_model import Node, Shape, Stored, Weight, numbers, some
from ddlopt.instances.readers.models.onnx_rules import ELEMENTWISE, NORMALISATIONS, STATE, word

_FEW, _ROUNDED = 4, 1e-6
"""Numbers of which fewer are equally spaced by chance, and how much rounding moves one, as a part of the largest."""
_FAR_BELOW = -99.0
"""What a mask adds to the logits of what is not to be seen."""


class Judge:
    """Which weights training changes, in a file that stores these numbers."""

    def __init__(self, stored: Sequence[Stored]) -> None:
        self.stored = stored
        self.repeated: dict[str, int] = {}
        """Numbers that an exporter repeated, by the names of what they are in."""

    @cached_property
    def varied(self) -> bool:
        """Whether the file has numbers in its matrices, and not the same one all over."""
        return any(_is_matrix(part) and not _is_uniform(array_of(part.proto)) for part in self.stored)

    @cached_property
    def by_name(self) -> bool:
        """Whether the file has matrices among what it stores by name."""
        return any(_is_matrix(part) and not part.inline for part in self.stored)

    def trained(self, node: Node) -> Node:
        """A node with those of its weights alone that training changes."""
        if node.kind in NORMALISATIONS and self._does_nothing(node):
            return replace(node, weights={})
        weights = {}
        for place, weight in node.weights.items():
            name = word(node, place)
            parts = weight.parts if name else ()
            if name in ELEMENTWISE:
                parts = tuple(self._once(part) for part in parts if not self._is_made_by_rule(part))
            if parts:
                weights[place] = Weight(weight.shape, parts)
        return replace(node, weights=weights)

    def _does_nothing(self, node: Node) -> bool:
        """Whether a normalisation scales by 1 and shifts by 0, with constants that the exporter made."""
        parts = [(place, part) for place, weight in node.weights.items() for part in weight.parts if word(node, place)]
        made = [(place, array_of(part.proto) if _is_exporters(part) else None) for place, part in parts]
        return all(array is not None and (array == (1 if place == 1 else 0)).all() for place, array in made)

    def _is_made_by_rule(self, part: Stored) -> bool:
        """Whether a matrix is a mask or a table of positions, which training does not change.

        A mask has nothing but 0 and 1, or nothing but 0 and very low numbers; one that hides nothing is the same all
        over, where the file's other matrices are not. A table of sines and cosines has nothing but 0 and 1 for the
        first position, and numbers between -1 and 1 for the others; what ALiBi adds to logits grows by the same step
        from position to position. No trained matrix looks like that. What stands between operators in a file that has
        its weights by name was calculated while it was exported.
        """
        found = array_of(part.proto) if _is_matrix(part) else None
        if found is None or found.dtype.kind not in "fV":
            return False
        if part.inline and self.by_name:
            return True
        values = np.squeeze(found.astype(np.float32))
        if _is_uniform(values):
            return self.varied
        others = values[values != 0]
        hides = others.size < values.size and bool((others == 1).all() or (others < _FAR_BELOW).all())
        return hides or _is_of_positions(values) or _is_of_distances(values)

    def _once(self, part: Stored) -> Stored:
        """The rows that a constant has, where an exporter repeated them.

        A token that is the same for all samples, or what is looked up in a small table for each pair of positions: of
        all vectors along some axis no more than half are distinct. No trained matrix has as many twice.
        """
        found = array_of(part.proto) if _is_matrix(part) and self.varied else None
        if found is None:
            return part
        shapes = [_distinct(found, axis) for axis, size in enumerate(part.shape) if size > 1]
        shape = min(shapes, key=numbers)
        if 2 * numbers(shape) > numbers(part.shape):
            return part
        self.repeated[part.name] = numbers(part.shape) - numbers(shape)
        return replace(part, shape=shape)

    def notes(self) -> Iterator[str]:
        """What was counted otherwise than it is stored."""
        if self.repeated:
            yield (
                f"rows counted once that an exporter repeated: {sum(self.repeated.values())} numbers in "
                f"{len(self.repeated)} constants ({some(list(self.repeated))})"
            )


def _distinct(values: Values, axis: int) -> Shape:
    """How many vectors along an axis are distinct, and how long they are."""
    rows = np.ascontiguousarray(np.moveaxis(values, axis, -1)).reshape(-1, values.shape[axis])
    return len({row.tobytes() for row in rows}), values.shape[axis]


def _is_of_positions(values: Values) -> bool:
    first, others = values[0], values[1:]
    plain = np.isin(first, (0.0, 1.0)).all() and not np.isin(others, (0.0, 1.0)).all()
    return bool(plain and (np.abs(others) <= 1).all())


def _is_of_distances(values: Values) -> bool:
    """Whether all vectors along the last axis are equally spaced, distinct numbers."""
    if values.shape[-1] < _FEW:
        return False
    steps = np.diff(values.astype(np.float64), axis=-1)
    first, room = steps[..., :1], _ROUNDED * np.abs(values).max(axis=-1, keepdims=True)
    return bool(first.all() and (np.abs(steps - first) <= room).all())


def _is_matrix(part: Stored) -> bool:
    return sum(size > 1 for size in part.shape) > 1


def _is_uniform(values: Values | None) -> bool:
    return values is None or values.size == 0 or bool((values == values.flat[0]).all())


def _is_exporters(part: Stored) -> bool:
    """Whether an exporter made it: PyTorch's call theirs so, and parameters as the module does."""
    return part.inline or re.fullmatch(r"(onnx::\w+|val)_\d+", part.name) is not None


def left_out(stored: Sequence[Stored], nodes: Sequence[Node], trained_nodes: Sequence[Node]) -> tuple[Stored, ...]:
    """What the file stores that is a weight of no node, but for running means and the like."""
    used = {part.name for node in trained_nodes for weight in node.weights.values() for part in weight.parts}
    for node in nodes:
        for place in STATE.get(node.kind, ()):
            used |= {part.name for part in node.weights[place].parts} if place in node.weights else set()
    return tuple(part for part in stored if part.name not in used)


def tied(nodes: Sequence[Node]) -> tuple[Mapping[str, Stored], tuple[str, ...]]:
    """Matrices by the names of those that are the same once more, and notes.

    Language models use the table of their words once more, turned, as their last weight, and exporters store the turned
    one as well. Where layers share a weight they store what they made of it for each. Of two matrices that have names
    of their own neither is the other, even if they are equal before training.
    """
    tables = dict.fromkeys(part for node in nodes if node.kind == "Gather" for part in _matrices(node, 0))
    dense = [part for node in nodes if node.kind in ("MatMul", "Gemm") for part in _matrices(node, 0, 1)]
    by_shape: dict[tuple[int, ...], list[Stored]] = {}
    for part in dict.fromkeys((*tables, *dense)):
        by_shape.setdefault(tuple(sorted(part.shape)), []).append(part)
    same, maybe = dict[str, Stored](), list[str]()
    for parts in by_shape.values():
        if len(parts) == 1:
            continue
        seen: dict[object, Stored] = {}
        for part in parts:
            prints = _prints(part)
            first = next((seen[each] for each in prints if each in seen), None)
            if first is None or not (first in tables or (_is_exporters(first) and _is_exporters(part))):
                seen |= dict.fromkeys(prints, part)
            else:
                same[part.name] = first
        hidden = [part for part in parts if part.name not in same and _outside(part) is not None]
        for table in (part for part in hidden if part in tables):
            maybe += [
                f"'{part.name}' may be the table '{table.name}' once more, whose numbers are elsewhere"
                for part in hidden
                if part not in tables and part.shape == table.shape[::-1]
            ]
    return same, tuple(maybe)


def _matrices(node: Node, *places: int) -> Iterator[Stored]:
    for place in places:
        for part in node.weights[place].parts if place in node.weights else ():
            if len(part.shape) == 2 and min(part.shape) > 1:
                yield part


def _prints(part: Stored) -> tuple[object, ...]:
    """What two matrices have in common if they are the same, as they are or turned; nothing if nobody can tell."""
    outside = _outside(part)
    if outside is not None:
        return ((part.shape, outside),)
    found = array_of(part.proto)
    if found is None or _is_uniform(found):
        return ()
    return tuple(
        (each.shape, hashlib.blake2b(np.ascontiguousarray(each).tobytes()).digest()) for each in (found, found.T)
    )


def _outside(part: Stored) -> tuple[tuple[str, str], ...] | None:
    """Where numbers are that are not in the file."""
    entries = () if part.proto is None else part.proto.external_data
    return tuple(sorted((entry.key, entry.value) for entry in entries)) or None


def renamed(node: Node, same: Mapping[str, Stored]) -> Node:
    """A node that reads the tables of :func:`tied`."""
    weights = {
        place: Weight(weight.shape, tuple(dict.fromkeys(same.get(part.name, part) for part in weight.parts)))
        for place, weight in node.weights.items()
    }
    return replace(node, weights=weights)
