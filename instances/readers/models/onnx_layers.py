"""What operators of ONNX cost, as layers of a network: parameters, operations and numbers moved, for one sample.

Multiplications and additions are counted as :mod:`ddlopt.instances.workloads.networks.layers` counts them, so that a
network costs the same whether it is read from a file or built from its paper. What acts on every number by itself
(activation functions, additions, reshaping) runs with its neighbours and costs nothing; operators that are not known
cost the bytes that they move, with every matrix among their weights as one that is trained, and are told.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ddlopt.instances.readers.models.onnx_model import Node, OnnxModel, Shape, numbers
from ddlopt.instances.workloads.networks.layers import Layer, ParameterTensors
from ddlopt.instances.workloads.training import Workload
from ddlopt.models.errors import InstanceError

# fmt: off
_FREE = frozenset((
    "Abs", "Add", "And", "Cast", "Ceil", "Clip", "Concat", "Constant", "Div", "Dropout", "Elu", "Equal", "Erf",
    "Exp", "Expand", "Flatten", "Floor", "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish",
    "Identity", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "LogSoftmax", "Max", "Mean", "Min", "Mish",
    "Mod", "Mul", "Neg", "Not", "Or", "Pad", "Pow", "PRelu", "Range", "Reciprocal", "Relu", "Reshape", "Round",
    "Selu", "Shape", "Sigmoid", "Sign", "Slice", "Softmax", "Softplus", "Softsign", "Split", "Sqrt", "Squeeze",
    "Sub", "Sum", "Swish", "Tanh", "ThresholdedRelu", "Tile", "Transpose", "Unsqueeze", "Where", "Xor",
))
# fmt: on
"""Operators that run with their neighbours."""
_A_NORMALISATION = 8
"""Operations a number, as in :func:`ddlopt.instances.workloads.networks.layers.normalisation`."""
_WEIGHTS = {
    "Conv": ("", "weight", "bias"),
    "ConvTranspose": ("", "weight", "bias"),
    "Gemm": ("weight", "weight", "bias"),
    "MatMul": ("weight", "weight"),
    "BatchNormalization": ("", "scale", "shift"),
    "InstanceNormalization": ("", "scale", "shift"),
    "LayerNormalization": ("", "scale", "shift"),
    "GroupNormalization": ("", "scale", "shift"),
    "Gather": ("weight",),
    "LSTM": ("", "weight", "recurrence", "bias"),
    "GRU": ("", "weight", "recurrence", "bias"),
    "RNN": ("", "weight", "recurrence", "bias"),
    "PRelu": ("", "slope"),
    "Add": ("shift", "shift"),
    "Sub": ("shift", "shift"),
    "Mul": ("scale", "scale"),
    "Div": ("scale", "scale"),
}
"""By the place of an input, what training changes of it; running means and variances, and numbers alone, are not."""
_ORDER = {"bias": 0}
"""The backward pass has the gradient of a bias before that of its weight, and that of a scale before its shift."""


@dataclass(frozen=True)
class OnnxLayer:
    """An operator as a layer.

    Parameters
    ----------
    kind : str
    reads : tuple of int
        As those of its node.
    layer : Layer
    known : bool
        Whether there is a rule for what it costs.
    owner : str, optional
        The layer whose parameters it uses, if not its own.
    """

    kind: str
    reads: tuple[int, ...]
    layer: Layer
    known: bool
    owner: str | None = None


def layers_of(model: OnnxModel) -> tuple[OnnxLayer, ...]:
    """One for each node. Parameters that several nodes share belong to the first of them.

    Raises
    ------
    InstanceError
        If there is nothing to train, or the weights of an operator do not fit its other shapes.
    """
    found, owned, names = [], dict[str, str](), Counter[str]()
    for node in model.nodes:
        trained = _trained(node)
        own = {place: weight for place, weight in trained.items() if weight[0] not in owned}
        owner = next((owned[name] for name, _ in trained.values() if name in owned), None)
        name = _name(node, own)
        names[name] += 1
        unique = name if names[name] == 1 else f"{name}.{names[name]}"
        owned |= {weight: unique for weight, _ in own.values()}
        try:
            found.append(replace(_layer(node, own, unique, model.samples), owner=owner))
        except (IndexError, KeyError, ZeroDivisionError):
            raise InstanceError(f"operator '{node.name}' ({node.kind}): its weights do not fit its input") from None
    if not owned:
        raise InstanceError(f"model '{model.name}' has no weights that training changes")
    return tuple(found)


def workload_of(model: OnnxModel, samples: int) -> Workload:
    """The layers that have parameters or cost anything, for so many samples of a GPU."""
    layers = [each.layer for each in layers_of(model)]
    kept = tuple(layer for layer in layers if layer.parameters or layer.flops or layer.inputs)
    return Workload(model.name, kept, samples)


def unknown_kinds(model: OnnxModel) -> str:
    """Operators costed by bytes alone, with their numbers; an empty text if there are none."""
    kinds = Counter(each.kind for each in layers_of(model) if not each.known)
    return ", ".join(f"{count} x {kind}" for kind, count in sorted(kinds.items()))


def _trained(node: Node) -> Mapping[int, tuple[str, Shape]]:
    """Weights at places where training changes them; a number by itself is a constant of the architecture."""
    return {place: weight for place, weight in node.weights.items() if _word(node, place) and numbers(weight[1]) > 1}


def _word(node: Node, place: int) -> str:
    """What a weight is called, empty if training does not change it; of operators without a rule, each matrix."""
    if node.kind in _WEIGHTS or node.kind in _FREE or node.kind in _FLOPS:
        places = _WEIGHTS.get(node.kind, ())
        return places[place] if place < len(places) else ""
    return f"weight{place}" if len(node.weights[place][1]) > 1 else ""


def _name(node: Node, own: Mapping[int, tuple[str, Shape]]) -> str:
    """What the names of its weights have in common, which mostly is the name of the module; else its own."""
    for place, (name, _) in own.items():
        module, _, last = name.rpartition(".")
        if module and last == _word(node, place):
            return module
    return _common([name for name, _ in own.values()]).rstrip("._-/:") or node.name


def _common(names: Sequence[str]) -> str:
    """What all names begin with; nothing of none."""
    alike = itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    return "".join(letters[0] for letters in alike)


def _layer(node: Node, own: Mapping[int, tuple[str, Shape]], name: str, samples: int) -> OnnxLayer:
    outputs = math.ceil(numbers(node.outputs[0]) / samples)
    inputs = math.ceil(sum(numbers(shape) for shape in node.inputs if shape) / samples)
    tensors = _tensors(node, own)
    parameters = sum(numbers(shape) for _, shape in tensors)
    known = node.kind in _FLOPS or node.kind in _FREE
    if node.kind in _FREE and not tensors:
        return OnnxLayer(node.kind, node.reads, Layer(name, 0, 0, 0, 0), known=True)
    if node.kind in _FREE:
        flops = outputs
    elif node.kind in _FLOPS:
        flops = math.ceil(_FLOPS[node.kind](node) / samples)
    else:
        flops = 0
    convolution = node.kind in ("Conv", "ConvTranspose")
    inputs = outputs if node.kind == "Gather" else inputs
    return OnnxLayer(
        node.kind, node.reads, Layer(name, parameters, flops, inputs, outputs, convolution, tensors), known
    )


def _tensors(node: Node, own: Mapping[int, tuple[str, Shape]]) -> ParameterTensors:
    """Words and shapes; weights of dense layers as (outputs, inputs)."""
    tensors = [(_word(node, place), _oriented(node, place, shape)) for place, (_, shape) in own.items()]
    return tuple(sorted(tensors, key=lambda tensor: _ORDER.get(tensor[0], 1)))


def _oriented(node: Node, place: int, shape: Shape) -> Shape:
    if node.kind == "MatMul" and len(shape) == 2:
        return shape[::-1] if place == 1 else shape
    if node.kind == "Gemm" and len(shape) == 2 and place < 2:
        swapped = bool(node.attributes.get("transB" if place == 1 else "transA", 0))
        return shape[::-1] if swapped == (place == 0) else shape
    if node.kind == "ConvTranspose" and place == 1:
        return (shape[1], shape[0], *shape[2:])
    return shape


def _of_convolution(node: Node) -> int:
    return 2 * numbers(node.weights[1][1]) * numbers(node.outputs[0]) // node.outputs[0][1]


def _of_transposed_convolution(node: Node) -> int:
    return 2 * numbers(node.weights[1][1]) * numbers(node.inputs[0]) // node.inputs[0][1]


def _of_product(node: Node) -> int:
    """Every number of the output is a sum over what both factors share."""
    left = node.weights[0][1] if 0 in node.weights else node.inputs[0]
    swapped = node.kind == "Gemm" and node.attributes.get("transA", 0)
    return 2 * numbers(node.outputs[0]) * left[0 if swapped else -1]


def _of_window(node: Node) -> int:
    return numbers(node.outputs[0]) * numbers(tuple(node.attributes["kernel_shape"]))


def _of_recurrence(node: Node) -> int:
    steps, samples = node.inputs[0][:2]
    return 2 * steps * samples * (numbers(node.weights[1][1]) + numbers(node.weights[2][1]))


def _normalised(node: Node) -> int:
    return _A_NORMALISATION * numbers(node.outputs[0])


def _read(node: Node) -> int:
    return numbers(node.inputs[0])


_FLOPS: Mapping[str, Callable[[Node], int]] = {
    "Conv": _of_convolution,
    "ConvTranspose": _of_transposed_convolution,
    "Gemm": _of_product,
    "MatMul": _of_product,
    "BatchNormalization": _normalised,
    "InstanceNormalization": _normalised,
    "LayerNormalization": _normalised,
    "GroupNormalization": _normalised,
    "MaxPool": _of_window,
    "AveragePool": _of_window,
    "LpPool": _of_window,
    "GlobalAveragePool": _read,
    "GlobalMaxPool": _read,
    "ReduceMean": _read,
    "ReduceSum": _read,
    "ReduceMax": _read,
    "ArgMax": _read,
    "LRN": lambda node: 2 * node.attributes["size"] * numbers(node.outputs[0]),
    "LSTM": _of_recurrence,
    "GRU": _of_recurrence,
    "RNN": _of_recurrence,
    "Gather": lambda _: 0,
}
"""Operations for all samples of a file's shapes."""
