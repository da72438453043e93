"""Sequences of tensors in ONNX graphs: lists that are known when the graph is walked, so that none is left in it.

What splits a tensor into a sequence becomes a split, what puts one together a concatenation, and what takes an element
out, or counts them, nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ddlopt.instances.readers.models.onnx_constants import Tensor
from ddlopt.models.errors import InstanceError

SEQUENCES = frozenset(
    {
        "ConcatFromSequence",
        "SequenceAt",
        "SequenceConstruct",
        "SequenceEmpty",
        "SequenceErase",
        "SequenceInsert",
        "SequenceLength",
        "SplitToSequence",
    }
)
"""Operators that are replaced."""
_MOST_PARTS = 2**16
"""Of a tensor: a slip of the pen must not fill the memory."""
_INPUTS_SINCE = 13
"""The version in which sizes of parts and axes became inputs."""


@dataclass
class Rewriting:
    """One operator on a sequence.

    Parameters
    ----------
    onnx : module
    path : Path
        For messages.
    node : NodeProto
    inputs : sequence of Tensor or None
    name : str
        Of the operator.
    version : int
        Of the operators of ONNX.
    store : callable
        Puts a tensor under a name.
    take : callable
        Takes an operator in its place and gives its first output, or the output of a name.
    """

    onnx: Any
    path: Path
    node: Any
    inputs: Sequence[Tensor | None]
    name: str
    version: int
    store: Callable[[str, Tensor], None]
    take: Callable[[Any], Tensor]

    def output(self) -> Tensor:
        """What the operator gives.

        Raises
        ------
        InstanceError
            If it depends on data, or there is no such element.
        """
        match self.node.op_type:
            case "SequenceEmpty":
                return self._sequence([])
            case "SequenceConstruct":
                return self._sequence([each for each in self.inputs if each is not None])
            case "SequenceInsert":
                members = list(self._members())
                members.insert(self._place(2, len(members), len(members)), self._given(1))
                return self._sequence(members)
            case "SequenceErase":
                members = list(self._members())
                del members[self._place(1, len(members) - 1, len(members) - 1)]
                return self._sequence(members)
            case "SequenceAt":
                members = list(self._members())
                return members[self._place(1, len(members) - 1)]
            case "SequenceLength":
                return self._constant(np.array(len(self._members())))
            case "SplitToSequence":
                return self._sequence(self._split())
        return self._together()

    def _sequence(self, members: list[Tensor]) -> Tensor:
        parts = tuple(dict.fromkeys(part for each in members for part in each.parts))
        return Tensor(self.onnx.TypeProto(), parts=parts, members=tuple(members))

    def _constant(self, value: Any) -> Tensor:
        proto = self.onnx.numpy_helper.from_array(value)
        kind = self.onnx.helper.make_tensor_type_proto(proto.data_type, value.shape)
        return Tensor(kind, value=value, whole=True)

    def _given(self, place: int) -> Tensor:
        found = self.inputs[place] if place < len(self.inputs) else None
        if found is None:
            raise self._broken(f"has no input {place}")
        return found

    def _members(self) -> tuple[Tensor, ...]:
        members = self._given(0).members
        if members is None:
            raise self._broken("reads a tensor in place of a sequence")
        return members

    def _place(self, place: int, most: int, usual: int | None = None) -> int:
        """A place in the sequence, which may be counted from its end."""
        if usual is not None and (place >= len(self.inputs) or self.inputs[place] is None):
            found = usual
        else:
            value = self._given(place).value
            if value is None or value.size != 1:
                raise self._broken("takes an element whose place depends on data")
            found = int(value.reshape(()))
        count = len(self._members())
        found += count if found < 0 else 0
        if not 0 <= found <= most:
            raise self._broken(f"takes element {found} of {count}")
        return found

    def _attribute(self, name: str, usual: int) -> int:
        return next((int(each.i) for each in self.node.attribute if each.name == name), usual)

    def _split(self) -> list[Tensor]:
        given = self._given(0)
        if given.shape is None:
            raise self._broken("splits a tensor whose size cannot be found")
        axis = self._axis(self._attribute("axis", 0), len(given.shape))
        sizes = self._sizes(given.shape[axis])
        if len(sizes) > _MOST_PARTS:
            raise self._broken(f"makes {len(sizes)} parts; at most {_MOST_PARTS} are read")
        names = [f"{self.name}/part{place}" for place in range(len(sizes))]
        first = self._made("Split", [given], names, "split", sizes, axis=axis)
        found = [first, *(self.take(each) for each in names[1:])]
        if len(self.inputs) < 2 and not self._attribute("keepdims", 1):
            return [
                self._made("Squeeze", [each], [f"{self.name}/alone{place}"], "axes", [axis])
                for place, each in enumerate(found)
            ]
        return found

    def _sizes(self, length: int) -> list[int]:
        if len(self.inputs) < 2 or self.inputs[1] is None:
            return [1] * length
        value = self.inputs[1].value
        if value is None:
            raise self._broken("makes parts whose sizes depend on data")
        if value.ndim:
            return [int(each) for each in value]
        size = int(value)
        if size < 1:
            raise self._broken(f"makes parts of size {size}")
        return [min(size, length - start) for start in range(0, length, size)]

    def _together(self) -> Tensor:
        """A concatenation, along an axis or along a new one."""
        members, axis = list(self._members()), self._attribute("axis", 0)
        if not members:
            raise self._broken("puts an empty sequence together")
        if self._attribute("new_axis", 0):
            axis = self._axis(axis, len(members[0].shape or ()) + 1)
            members = [
                self._made("Unsqueeze", [each], [f"{self.name}/longer{place}"], "axes", [axis])
                for place, each in enumerate(members)
            ]
        return self._made("Concat", members, [f"{self.name}/whole"], axis=axis)

    def _axis(self, axis: int, rank: int) -> int:
        found = axis + rank if axis < 0 else axis
        if not 0 <= found < rank:
            raise self._broken(f"has the axis {axis} of {rank}")
        return found

    def _made(
        self,
        kind: str,
        given: Sequence[Tensor],
        outputs: list[str],
        sized: str = "",
        sizes: Sequence[int] = (),
        **attributes: int,
    ) -> Tensor:
        """The first output of an operator; ``sized``: what ``sizes`` are, an attribute once and an input since."""
        inputs = [f"{outputs[0]}/{place}" for place in range(len(given))]
        for each, tensor in zip(inputs, given, strict=True):
            self.store(each, tensor)
        options: dict[str, Any] = dict(attributes)
        if sized and self.version >= _INPUTS_SINCE:
            inputs.append(f"{outputs[0]}/{sized}")
            self.store(inputs[-1], self._constant(np.array(sizes, dtype=np.int64)))
        elif sized:
            options[sized] = list(sizes)
        return self.take(self.onnx.helper.make_node(kind, inputs, outputs, outputs[0], **options))

    def _broken(self, what: str) -> InstanceError:
        return InstanceError(f"{self.path}: operator '{self.name}' ({self.node.op_type}) {what}")
