"""Operators of ONNX: which of their inputs training changes, and what they cost for all samples of a file's shapes.

Multiplications and additions are counted as :mod:`ddlopt.instances.workloads.networks.layers` counts them, so that a
network costs the same whether it is read from a file or built from its paper. What acts on every number by itself
(activation functions, additions, reshaping) runs with its neighbours and costs nothing.
"""

import math
from collections.abc import Callable, Mapping

from ddlopt.instances.readers.models.onnx_model import Node, Shape, numbers

# fmt: off
FREE = frozenset((
    "Abs", "Add", "And", "BitShift", "Cast", "CastLike", "Ceil", "Celu", "Clip", "Concat", "Constant", "Cos",
    "DepthToSpace", "DequantizeLinear", "Div", "Dropout", "DynamicQuantizeLinear", "Elu", "Equal", "Erf", "Exp",
    "Expand", "EyeLike", "Flatten", "Floor", "GatherElements", "GatherND", "Gelu", "Greater", "GreaterOrEqual",
    "HardSigmoid", "HardSwish", "Hardmax", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log",
    "LogSoftmax", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "OneHot", "Or", "Pad", "Pow", "PRelu",
    "QuantizeLinear", "RandomNormalLike", "RandomUniformLike", "Range", "Reciprocal", "Relu", "Reshape", "Resize",
    "RotaryEmbedding", "Round", "ScatterElements", "ScatterND", "Selu", "Shape", "Shrink", "Sigmoid", "Sign", "Sin",
    "Slice", "Softmax", "Softplus", "Softsign", "SpaceToDepth", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Swish",
    "Tan", "Tanh", "ThresholdedRelu", "Tile", "Transpose", "Trilu", "Unsqueeze", "Upsample", "Where", "Xor",
))
# fmt: on
"""Operators that run with their neighbours."""
NORMALISATIONS = frozenset(
    {
        "BatchNormalization",
        "GroupNormalization",
        "InstanceNormalization",
        "LayerNormalization",
        "RMSNormalization",
        "SimplifiedLayerNormalization",
    }
)
_A_NORMALISATION = 8
"""Operations a number, as in :func:`ddlopt.instances.workloads.networks.layers.normalisation`."""
_WEIGHTS: Mapping[str, tuple[str, ...]] = {
    "Conv": ("", "weight", "bias"),
    "ConvInteger": ("", "weight"),
    "ConvTranspose": ("", "weight", "bias"),
    "DeformConv": ("", "weight", "", "bias"),
    "QLinearConv": ("", "", "", "weight"),
    "Gemm": ("weight", "weight", "bias"),
    "MatMul": ("weight", "weight"),
    "MatMulInteger": ("weight", "weight"),
    "QLinearMatMul": ("weight", "", "", "weight"),
    "Attention": ("weight", "weight", "weight"),
    **dict.fromkeys(NORMALISATIONS, ("", "scale", "shift")),
    "Gather": ("weight",),
    "GatherND": ("weight",),
    "GatherElements": ("weight",),
    "LSTM": ("", "weight", "recurrence", "bias", "", "", "", "peephole"),
    "GRU": ("", "weight", "recurrence", "bias"),
    "RNN": ("", "weight", "recurrence", "bias"),
    "PRelu": ("", "slope"),
    "Add": ("shift", "shift"),
    "Sub": ("shift", "shift"),
    "Mul": ("scale", "scale"),
    "Div": ("scale", "scale"),
    "Pow": ("", "exponent"),
    "Where": ("", "token", "token"),
}
"""By the place of an input, what training changes of it; running means and variances, and numbers alone, are not."""
_OF_EACH = {
    "Concat": "token",
    "Einsum": "weight",
    "Expand": "token",
    "Max": "shift",
    "Mean": "shift",
    "Min": "shift",
    "Sum": "shift",
}
"""Likewise, at any place."""
STATE: Mapping[str, tuple[int, ...]] = {"BatchNormalization": (3, 4)}
"""Places of what changes in training, but not by gradients."""
ELEMENTWISE = frozenset({"shift", "scale", "token"})
"""Words of what stands at the places of data, where masks and positions stand as well."""
_OUTER = frozenset({"Einsum", "MatMul"})


def word(node: Node, place: int) -> str:
    """What a weight is called, empty if training does not change it; of operators without a rule, each matrix."""
    if not is_known(node.kind):
        return f"weight{place}" if len(node.weights[place].shape) > 1 else ""
    places = _WEIGHTS.get(node.kind, ())
    found = places[place] if place < len(places) else _OF_EACH.get(node.kind, "")
    return "" if found and _scales_positions(node, place, found) else found


def _scales_positions(node: Node, place: int, found: str) -> bool:
    """Whether a constant gives frequencies to positions: each with each, or one by one."""
    others = [each for each in range(len(node.operands)) if each != place and node.inputs[each] != ()]
    if not others or not all(each in node.positions for each in others):
        return False
    return found in ELEMENTWISE or (node.kind in _OUTER and _summed(node) == 1)


def is_known(kind: str) -> bool:
    """Whether there is a rule for what an operator costs."""
    return kind in FLOPS or kind in FREE


def oriented(node: Node, place: int, shape: Shape) -> Shape:
    """The shape of a weight of a dense layer as (outputs, inputs), and of any other as it is."""
    if node.kind in ("MatMul", "MatMulInteger", "QLinearMatMul") and len(shape) == 2:
        return shape[::-1] if place > 0 else shape
    if node.kind == "Gemm" and len(shape) == 2 and place < 2:
        swapped = bool(node.attributes.get("transB" if place == 1 else "transA", 0))
        return shape[::-1] if swapped == (place == 0) else shape
    if node.kind == "ConvTranspose" and place == 1:
        return (shape[1], shape[0], *shape[2:])
    return shape


def _of_convolution(node: Node) -> int:
    weight = node.operands[3 if node.kind == "QLinearConv" else 1]
    return 2 * numbers(weight) * numbers(node.outputs[0]) // node.outputs[0][1]


def _of_transposed_convolution(node: Node) -> int:
    return 2 * numbers(node.operands[1]) * numbers(node.operands[0]) // node.operands[0][1]


def _summed(node: Node) -> int:
    """How many products are added for each number of the output."""
    if node.kind != "Einsum":
        swapped = node.kind == "Gemm" and node.attributes.get("transA", 0)
        return node.operands[0][0 if swapped else -1]
    left, _, right = node.attributes["equation"].decode().replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    for letters, shape in zip(left.split(","), node.operands, strict=False):
        before, dots, after = letters.partition("...")
        sizes |= dict(zip(before, shape, strict=False))
        if dots and after:
            sizes |= dict(zip(after, shape[-len(after) :], strict=False))
    if not right:
        return 1
    return math.prod(size for letter, size in sizes.items() if letter not in right)


def _of_product(node: Node) -> int:
    """Every number of the output is a sum over what both factors share."""
    return 2 * numbers(node.outputs[0]) * _summed(node)


def _of_attention(node: Node) -> int:
    """Products of queries and keys, and of those with values."""
    queries, keys = node.operands[0], node.operands[1]
    return 4 * numbers(queries) * keys[-2]


def _of_window(node: Node) -> int:
    return numbers(node.outputs[0]) * numbers(tuple(node.attributes["kernel_shape"]))


def _of_recurrence(node: Node) -> int:
    steps, samples = node.inputs[0][:2]
    return 2 * steps * samples * (numbers(node.operands[1]) + numbers(node.operands[2]))


def _normalised(node: Node) -> int:
    return _A_NORMALISATION * numbers(node.outputs[0])


def _read(node: Node) -> int:
    return numbers(node.inputs[0])


FLOPS: Mapping[str, Callable[[Node], int]] = {
    "Conv": _of_convolution,
    "ConvInteger": _of_convolution,
    "QLinearConv": _of_convolution,
    "DeformConv": _of_convolution,
    "ConvTranspose": _of_transposed_convolution,
    "Gemm": _of_product,
    "MatMul": _of_product,
    "MatMulInteger": _of_product,
    "QLinearMatMul": _of_product,
    "Einsum": _of_product,
    "Attention": _of_attention,
    **dict.fromkeys(NORMALISATIONS, _normalised),
    "MaxPool": _of_window,
    "AveragePool": _of_window,
    "LpPool": _of_window,
    "GlobalAveragePool": _read,
    "GlobalMaxPool": _read,
    "ReduceMean": _read,
    "ReduceSum": _read,
    "ReduceMax": _read,
    "ReduceMin": _read,
    "ReduceProd": _read,
    "ReduceL1": _read,
    "ReduceL2": _read,
    "ReduceSumSquare": _read,
    "ReduceLogSumExp": _read,
    "LpNormalization": _read,
    "ArgMax": _read,
    "ArgMin": _read,
    "LRN": lambda node: 2 * node.attributes["size"] * numbers(node.outputs[0]),
    "LSTM": _of_recurrence,
    "GRU": _of_recurrence,
    "RNN": _of_recurrence,
    "Gather": lambda _: 0,
}
"""Operations for all samples of a file's shapes."""
