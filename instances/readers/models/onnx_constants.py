"""What is known of tensors of an ONNX graph before it runs: types, shapes, and the numbers that do not depend on data.

Shapes of one operator's outputs come from the package's rules, given the numbers of inputs that are known; its
reference implementation calculates what sizes are made of, however an exporter wrote that down.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddlopt.instances.readers.models.onnx_model import Shape, Stored, numbers

Values = NDArray[Any]

_MOST_NUMBERS = 2**16
"""Of a tensor whose numbers are calculated; sizes, and what they are picked from, have far fewer."""
_MOST_GIVEN = 256
"""Numbers of an input that rules for shapes get to see: sizes, amounts of padding, places."""
# fmt: off
_CALCULATED = frozenset((
    "Abs", "Add", "And", "ArgMax", "ArgMin", "Cast", "CastLike", "Ceil", "Clip", "Compress", "Concat", "Constant",
    "ConstantOfShape", "CumSum", "Div", "Equal", "Expand", "Flatten", "Floor", "Gather", "GatherElements", "GatherND",
    "Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg", "NonZero",
    "Not", "Or", "Pad", "Pow", "Range", "Reciprocal", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "Relu",
    "Reshape", "Round", "ScatterElements", "ScatterND", "Shape", "Sign", "Size", "Slice", "Split", "Sqrt", "Squeeze",
    "Sub", "Sum", "Tile", "Transpose", "Trilu", "Unsqueeze", "Where", "Xor",
))
# fmt: on
"""Operators that sizes are calculated with."""
_OF_SHAPE = frozenset({"Shape", "Size"})
"""Operators that need the shape of their input alone."""
_NO_LARGER = frozenset({"Compress", "NonZero"})
"""Operators whose outputs have sizes that depend on numbers, and are not much larger than their inputs."""
SAME_NUMBERS = frozenset({"Cast", "Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators whose output has the numbers of their first input."""
_OF_FIRST = SAME_NUMBERS | {
    "CastLike", "DequantizeLinear", "Gather", "GatherElements", "GatherND", "Pad", "QuantizeLinear", "Resize", "Slice",
}  # fmt: skip
"""Operators whose other inputs say which numbers, or how they are packed."""
_OF_WHOLE_NUMBERS = SAME_NUMBERS | {
    "Add", "Concat", "CumSum", "Div", "Expand", "Gather", "Max", "Min", "Mul", "Neg", "Range", "Slice", "Split", "Sub",
    "Tile",
}  # fmt: skip
"""Operators whose output is made of positions if all their inputs are."""
_NO_LONGER = frozenset({"ArgMax", "ArgMin", "Cos", "Shape", "Sin", "Size"})
"""Operators from which no weight is to be had: what goes through a sine is a position."""
_LIKE_FIRST = frozenset({"GroupNormalization", "MeanVarianceNormalization", "SimplifiedLayerNormalization"})
"""Operators that the package, or an old one, has no rule for, whose output has the shape of the first input."""


@dataclass(frozen=True)
class Tensor:
    """What is known of one.

    Parameters
    ----------
    type : TypeProto
    maker : int or None
        The node that gives it, -1 - k for the k-th input of the model; None if it does not depend on data.
    value : array, optional
        Its numbers, if they do not depend on data and are few.
    parts : tuple of Stored
        What of the file it is calculated from.
    whole : bool
        Whether it is of whole numbers, whatever its type.
    members : tuple of Tensor, optional
        What is in it, if it is a sequence of tensors.
    """

    type: Any
    maker: int | None = None
    value: Values | None = None
    parts: tuple[Stored, ...] = ()
    whole: bool = False
    members: "tuple[Tensor, ...] | None" = None

    @property
    def shape(self) -> Shape | None:
        """None if unknown."""
        kind = self.type.tensor_type
        if not kind.HasField("shape") or not all(dim.HasField("dim_value") for dim in kind.shape.dim):
            return None
        return tuple(dim.dim_value for dim in kind.shape.dim)


class Constants:
    """The package's rules and calculations, for one operator at a time."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        kinds = onnx.TensorProto
        names = kinds.DataType.keys()
        self.floats = {kinds.DataType.Value(name) for name in names if name.startswith(("FLOAT", "BFLOAT", "DOUBLE"))}
        self.packed = {kinds.DataType.Value(name) for name in names if name in ("INT4", "UINT4", "INT8", "UINT8")}

    def types(
        self, node: Any, inputs: Sequence[Tensor | None], versions: Mapping[str, int]
    ) -> Mapping[str, Any] | None:
        """Types of an operator's outputs by name, as far as they follow from its inputs; None if it has no rule.

        Raises
        ------
        ValueError
            If its inputs do not fit together.
        """
        onnx = self.onnx
        domain = "" if node.domain == "ai.onnx" else node.domain
        named = {name: each for name, each in zip(node.input, inputs, strict=True) if each is not None}
        try:
            schema = onnx.defs.get_schema(node.op_type, versions.get(domain, 1), domain)
            if schema.deprecated:
                return self._like_first(node, inputs)
        except onnx.defs.SchemaError:
            return self._like_first(node, inputs)
        data = {
            name: onnx.numpy_helper.from_array(each.value)
            for name, each in named.items()
            if each.value is not None and each.value.size <= _MOST_GIVEN and each.value.dtype != object
        }
        imports = [onnx.helper.make_opsetid(*entry) for entry in versions.items()]
        known = {name: each.type for name, each in named.items()}
        try:
            found: dict[str, Any] = onnx.shape_inference.infer_node_outputs(schema, node, known, data, None, imports)
        except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, RuntimeError) as problem:
            raise ValueError(" ".join(str(problem).split())[:200]) from None
        first = found.get(node.output[0])
        if first is None or not first.tensor_type.HasField("shape"):
            return self._like_first(node, inputs) or found
        return found

    def _like_first(self, node: Any, inputs: Sequence[Tensor | None]) -> Mapping[str, Any] | None:
        if node.op_type in _LIKE_FIRST and inputs and inputs[0] is not None:
            return {node.output[0]: inputs[0].type}
        return None

    def values(
        self, node: Any, inputs: Sequence[Tensor | None], types: Mapping[str, Any], versions: Mapping[str, int]
    ) -> Mapping[str, Values]:
        """Numbers of an operator's outputs by name, if they do not depend on data, are few and can be calculated."""
        if node.op_type not in _CALCULATED or node.domain not in ("", "ai.onnx"):
            return {}
        given = dict[str, Values]()
        for name, each in zip(node.input, inputs, strict=True):
            if each is None:
                continue
            if node.op_type in _OF_SHAPE and each.shape is not None:
                given[name] = np.broadcast_to(np.float32(0), each.shape)
            elif each.value is not None:
                given[name] = each.value
            else:
                return {}
        sizes = [Tensor(types[name]).shape if name in types else None for name in node.output if name]
        if not all(size is None or numbers(size) <= _MOST_NUMBERS for size in sizes):
            return {}
        if None in sizes and node.op_type not in _NO_LARGER:
            return {}
        names, helper = [name for name in node.output if name], self.onnx.helper
        opset = [helper.make_opsetid("", versions.get("", 1))]
        try:
            function = helper.make_function("ddlopt", "one", list(given), names, [node], opset)
            with np.errstate(all="ignore"):
                found = self.onnx.reference.ReferenceEvaluator(function).run(None, given, attributes={})
        except Exception:  # what a file asks of the reference implementation may fail in any way
            return {}
        arrays = [np.asarray(each) for each in found]
        if any(each.size > _MOST_NUMBERS or each.dtype == object for each in arrays):
            return {}
        return dict(zip(names, arrays, strict=True))

    def value_of(self, proto: Any) -> Values | None:
        """Numbers of a stored tensor; None if they are many, or not in the file."""
        if numbers(tuple(proto.dims)) > _MOST_NUMBERS:
            return None
        found = array_of(proto)
        return None if found is None or found.dtype == object else found

    def parts(self, node: Any, inputs: Sequence[Tensor | None], kind: int) -> tuple[Stored, ...]:
        """What of the file a constant that is calculated from constants still stands for, given its element type."""
        if kind not in self.floats | self.packed or node.op_type in _NO_LONGER:
            return ()
        if kind in self.packed and node.op_type not in SAME_NUMBERS | {"QuantizeLinear"}:
            return ()
        read = [each for each in inputs if each is not None]
        if node.op_type in _OF_FIRST:
            read = read[:1]
        elif node.op_type in ("Div", "Mul", "Pow", "MatMul", "Einsum") and any(_is_position(each) for each in read):
            return ()
        return tuple(dict.fromkeys(part for each in read for part in each.parts))

    def is_whole(self, node: Any, inputs: Sequence[Tensor | None], kind: int) -> bool:
        """Whether an output with this element type is of whole numbers."""
        if kind not in self.floats:
            return True
        read = [each for each in inputs if each is not None]
        made = [each for each in read if each.whole or each.maker is not None or each.shape != ()]
        return node.op_type in _OF_WHOLE_NUMBERS and bool(made) and all(each.whole for each in made)


def _is_position(tensor: Tensor) -> bool:
    return tensor.whole and tensor.shape is not None and numbers(tensor.shape) > 1


def array_of(proto: Any) -> Values | None:
    """Numbers of a stored tensor; None if they are not in the file, or not as many as it says."""
    from onnx import TensorProto, numpy_helper

    if proto is None or proto.data_location == TensorProto.EXTERNAL:
        return None
    try:
        return np.asarray(numpy_helper.to_array(proto))
    except (ValueError, TypeError, KeyError, OverflowError, MemoryError):
        return None
