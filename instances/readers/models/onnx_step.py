"""The training step of an ONNX model as a graph of operators, forward and backward.

As in graphs of networks from papers (:mod:`ddlopt.instances.workloads.networks.network_graphs`), reshaping, dropout and
untrained constants are left out, and a softmax at the end belongs to the loss.
"""

from collections.abc import Sequence

from ddlopt.instances.readers.models.onnx_layers import DENSE, OnnxLayer, layers_of
from ddlopt.instances.readers.models.onnx_model import OnnxModel, numbers
from ddlopt.instances.workloads.networks.layers import Layer
from ddlopt.instances.workloads.networks.network_graphs import Step
from ddlopt.instances.workloads.networks.training_graph import Need, Tape
from ddlopt.models.errors import InstanceError

_LEFT_OUT = frozenset(
    {"Cast", "Dropout", "Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
)
_OF_LOSS = frozenset({"Softmax", "LogSoftmax", "ArgMax", *_LEFT_OUT})
"""At the end."""
_SUMS = frozenset({"Add", "Sub", "Sum", "Mean"})
_BY_CONSTANTS = frozenset({"Add", "Sub", "Mul", "Div"})
"""Left out where the other operand is an untrained constant."""
_BY_OUTPUT = frozenset({"Relu", "Sigmoid", "Softmax", "LogSoftmax", "Tanh", "Exp", "Sqrt"})
"""Whose error depends on what they gave."""
_LINEAR = frozenset({"AveragePool", "GlobalAveragePool", "Gather", "ReduceMean", "ReduceSum", "Slice", "Split", "Pad"})
"""Whose error depends on the error alone."""
_MAXIMA = frozenset({"MaxPool", "GlobalMaxPool", "ReduceMax"})
_BY_WEIGHT = DENSE | {"Gather"}
"""Operators whose gradient is that of a weight, and not of a scale or a shift."""


def step_of(model: OnnxModel) -> Step:
    """The operators of a training step, each after those that it reads.

    Raises
    ------
    InstanceError
        If nothing is left between what comes in and what goes out.
    """
    layers = layers_of(model)
    ends = dict.fromkeys(_before_loss(layers, place) for place in model.outputs)
    lasts = [place for place in ends if place >= 0]
    if not lasts:
        raise InstanceError(f"model '{model.name}' does nothing but reshape")
    used = sorted(_used(layers, lasts))
    wiring = _Wiring(model, layers, used)
    for place in used:
        wiring.record(place)
    tape, sources = wiring.tape, list(dict.fromkeys(wiring.place[last] for last in lasts))
    whole = sources[0] if len(sources) == 1 else tape.concatenation("outputs", sources)
    return tape.loss(whole, tape.data("labels", 1))


def _before_loss(layers: Sequence[OnnxLayer], place: int) -> int:
    """What an output is made of, without what belongs to the loss."""
    while place >= 0 and layers[place].kind in _OF_LOSS and not layers[place].layer.tensors:
        place = layers[place].reads[0]
    return place


def _used(layers: Sequence[OnnxLayer], lasts: Sequence[int]) -> set[int]:
    """Nodes that these depend on."""
    found, left = set[int](), list(lasts)
    while left:
        place = left.pop()
        if place >= 0 and place not in found:
            found.add(place)
            left += layers[place].reads
    return found


class _Wiring:
    """A tape, and where it has what each node gives."""

    def __init__(self, model: OnnxModel, layers: Sequence[OnnxLayer], used: Sequence[int]) -> None:
        self.model, self.layers = model, layers
        self.of_name = {each.layer.name: each for each in layers}
        owners = (self._owner(layers[place]) for place in used)
        self.tape = Tape(list(dict.fromkeys(owner.name for owner in owners if owner is not None)))
        self.place: dict[int, int] = {}

    def _owner(self, own: OnnxLayer) -> Layer | None:
        """The layer whose gradient one adds to; none where one multiplies by what the other adds, or the like."""
        owner = None if own.owner is None else self.of_name[own.owner]
        if owner is None or (own.kind in _BY_WEIGHT) != (owner.kind in _BY_WEIGHT):
            return None
        if owner.kind in _BY_WEIGHT and "weight" not in dict(owner.layer.tensors):
            return None
        return _renamed(owner.layer)

    def record(self, place: int) -> None:
        """What a node adds to the tape."""
        own = self.layers[place]
        sources = [self._source(read) for read in own.reads]
        self.place[place] = self._recorded(own, _renamed(own.layer), sources, self._outputs(place))

    def _outputs(self, place: int) -> int:
        return -(-numbers(self.model.nodes[place].outputs[0]) // self.model.samples)

    def _source(self, read: int) -> int:
        if read not in self.place:
            name, shape = self.model.inputs[-1 - read]
            self.place[read] = self.tape.data(_plain(name), -(-numbers(shape) // self.model.samples))
        return self.place[read]

    def _recorded(self, own: OnnxLayer, layer: Layer, sources: list[int], outputs: int) -> int:
        tape, kind = self.tape, own.kind
        owner = self._owner(own)
        weighted = bool(layer.tensors) or owner is not None
        if kind in DENSE and "weight" in dict((owner or layer).tensors):
            return tape.linear(layer, sources[0], owner)
        if kind == "Gather" and weighted:
            return tape.lookup(layer, sources[0], owner)
        if weighted:
            return tape.normalisation(layer, self._one(layer, sources), kind == "BatchNormalization", owner)
        if kind in _LEFT_OUT or (kind in _BY_CONSTANTS and len(sources) == 1):
            return sources[0]
        if kind == "Concat" and len(sources) > 1:
            return tape.concatenation(layer.name, sources)
        if kind in _SUMS:
            return tape.addition(layer.name, *(self._as_large(layer, source, outputs) for source in sources))
        if len(sources) == 2 and (kind in DENSE or kind in _BY_CONSTANTS):
            return tape.product(layer.name, sources[0], sources[1], outputs, layer.flops)
        needs: tuple[Need, ...] = ("input",)
        if kind in _MAXIMA:
            needs = ("input", "output")
        elif kind in _BY_OUTPUT:
            needs = ("output",)
        elif kind in _LINEAR:
            needs = ()
        return tape.unary(layer.name, self._one(layer, sources), outputs, layer.flops, needs)

    def _one(self, layer: Layer, sources: list[int]) -> int:
        """What several sources give, side by side."""
        return sources[0] if len(sources) == 1 else self.tape.concatenation(f"{layer.name}.inputs", sources)

    def _as_large(self, layer: Layer, source: int, outputs: int) -> int:
        """A summand, repeated to the size of the sum."""
        if self.tape.operators[source].numbers == outputs:
            return source
        return self.tape.unary(f"{layer.name}.repeated {source}", source, outputs)


def _plain(name: str) -> str:
    """A name in which a slash does not begin the role of an operator."""
    return name.replace("/", ".")


def _renamed(layer: Layer) -> Layer:
    return Layer(
        _plain(layer.name), layer.parameters, layer.flops, layer.inputs, layer.outputs, layer.convolution, layer.tensors
    )
