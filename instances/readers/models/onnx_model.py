"""ONNX models as lists of operators with shapes: the data that a file is read into.

:func:`ddlopt.instances.readers.models.onnx_file.read_model` reads one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Shape = tuple[int, ...]
_SHOWN = 3
"""Names in a note, at most."""


@dataclass(frozen=True)
class Stored:
    """Numbers that the file stores, or once stored.

    Parameters
    ----------
    name : str
        Unique in the model.
    shape : tuple of int
    proto : TensorProto, optional
        Where its numbers are; None of what stands for weights in a file that was published without them.
    inline : bool
        Whether it stands between the operators, as a constant, and not among what the file stores by name.
    """

    name: str
    shape: Shape
    proto: Any = field(default=None, compare=False, repr=False)
    inline: bool = False


@dataclass(frozen=True)
class Weight:
    """A constant that an operator reads, and what of the file it is calculated from.

    Parameters
    ----------
    shape : tuple of int
        As the operator reads it.
    parts : tuple of Stored
        Each once. A weight that is stored as it is used, or in another shape, has one part.
    """

    shape: Shape
    parts: tuple[Stored, ...]


@dataclass(frozen=True)
class Node:
    """An operator of the file whose output depends on data.

    Parameters
    ----------
    name : str
        Its own, or that of its first output; with those of the functions that it is in before it.
    kind : str
        As ONNX calls it, e.g. ``"Conv"``; with the domain before it where it is not ONNX's own.
    reads : tuple of int
        Nodes whose outputs it reads, in order and each once; -1 - k for what comes into the model as its k-th input.
    inputs, outputs : tuple of tuple of int
        Shapes, in the order of the file; () where an optional input is left out, and of constants.
    operands : tuple of tuple of int
        As inputs, with the shapes of constants.
    weights : dict of int to Weight
        By the place of the input, constants that training changes.
    positions : frozenset of int
        Places of inputs that are whole numbers, such as positions, whatever type they were cast to.
    attributes : dict of str to object
    """

    name: str
    kind: str
    reads: tuple[int, ...]
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    operands: tuple[Shape, ...]
    weights: Mapping[int, Weight]
    positions: frozenset[int]
    attributes: Mapping[str, Any]


@dataclass(frozen=True)
class OnnxModel:
    """A model.

    Parameters
    ----------
    name : str
    samples : int
        That the shapes in it are for.
    inputs : tuple of (str, tuple of int)
        What comes in: names and shapes.
    nodes : tuple of Node
        Each after those that it reads.
    outputs : tuple of int
        The nodes that give what goes out, in order and each once.
    left_out : tuple of Stored
        Numbers of the file that are weights of no node.
    notes : tuple of str
        What was decided in reading that whoever uses the model should know.
    """

    name: str
    samples: int
    inputs: tuple[tuple[str, Shape], ...]
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    left_out: tuple[Stored, ...] = ()
    notes: tuple[str, ...] = ()


def numbers(shape: Shape) -> int:
    """How many there are in a tensor."""
    return math.prod(shape)


def some(names: Sequence[str]) -> str:
    """The first of some names, quoted, for a note."""
    return ", ".join(f"'{name}'" for name in names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
