"""The layers of an ONNX model as pieces that run under one parallelization strategy each.

A convolution or dense layer begins a piece, and what acts on every channel by itself (batch normalisation, pooling,
depthwise convolutions, activation functions) belongs to the piece before it where nothing else reads that; otherwise,
and where several activations meet, it is a piece of its own, cut along the channels. What needs all channels (layer
normalisation, an average over them, a shuffle, an operator without a rule) is not cut. Reshaping is no piece, nor is a
concatenation: who reads it reads all its parts. Who reads a part of an output is counted as reading all of it.

Weights that several layers share are whole on every server at the first of them, and the others, which may be cut,
have them there; so are weights of which a layer uses a part.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ddlopt.instances.readers.models.onnx_layers import DENSE, OnnxLayer, layers_of
from ddlopt.instances.readers.models.onnx_model import Node, OnnxModel, Shape, numbers
from ddlopt.instances.readers.models.onnx_rules import NORMALISATIONS, word
from ddlopt.instances.workloads.codesign.graphs import Graph, Piece
from ddlopt.instances.workloads.networks.layers import Layer

_MEET = frozenset({"Add", "And", "Div", "Equal", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum"})
_MEET |= {"Greater", "Less", "Where", "Xor"}
"""Free operators that combine numbers of several inputs."""
_BY_CHANNEL = frozenset({"BatchNormalization", "InstanceNormalization", "PRelu"})
_OF_ALL = NORMALISATIONS - _BY_CHANNEL
_LEAST_IMAGE = 4
"""Dimensions of a tensor whose second one is channels."""


@dataclass
class _Part:
    """A piece as it grows, and the channels of what it hands on."""

    piece: Piece
    channels: int


def graph_of_model(model: OnnxModel) -> Graph:
    """Pieces of a model, each after those that it reads.

    Raises
    ------
    InstanceError
        As :func:`~ddlopt.instances.readers.models.onnx_layers.layers_of`.
    """
    growing = _Growing(model, layers_of(model))
    for place in range(len(model.nodes)):
        growing.take(place)
    return Graph(tuple(part.piece for part in growing.parts), ())


class _Growing:
    """Pieces, and for each node those that have what it gives."""

    def __init__(self, model: OnnxModel, layers: Sequence[OnnxLayer]) -> None:
        self.model, self.layers = model, layers
        self.parts: list[_Part] = []
        self.given: list[tuple[int, ...]] = []
        self.readers = Counter(read for node in model.nodes for read in node.reads)
        self.only: list[bool] = []
        """Of each node, whether nobody but the node itself reads what its piece gives."""
        self.shared = {each.owner for each in layers if each.owner is not None}
        self.of_name = {each.layer.name: each.layer for each in layers}

    def take(self, place: int) -> None:
        """Find the pieces of a node."""
        node, own = self.model.nodes[place], self.layers[place]
        layer = own.layer
        hands_on = not _counts(own.layer) and own.kind not in (*_MEET, "Concat")
        read = node.reads[:1] if hands_on else node.reads
        sources = tuple(dict.fromkeys(part for each in read if each >= 0 for part in self.given[each]))
        alone = self._alone(read)
        if own.kind in DENSE and (layer.tensors or own.owner is not None):
            self._weighted(node, own, sources)
        elif _counts(layer) or (own.kind in _MEET and len(node.reads) > 1):
            self._other(node, own, sources, alone)
        elif _shuffles(node):
            self._other(node, replace(own, layer=replace(layer, outputs=self._outputs(node))), sources, alone)
        else:
            self.given.append(sources)
            self.only.append(alone or not sources)
            return
        self.only.append(True)

    def _alone(self, read: Sequence[int]) -> bool:
        """Whether these are one node, and nothing but one node reads what its piece gives."""
        return len(read) == 1 and read[0] >= 0 and self.readers[read[0]] == 1 and self.only[read[0]]

    def _outputs(self, node: Node) -> int:
        return -(-numbers(node.outputs[0]) // self.model.samples)

    def _weighted(self, node: Node, own: OnnxLayer, sources: tuple[int, ...]) -> None:
        """A convolution or dense layer; one with a channel of input for each of output is no more than a pooling."""
        layer = own.layer
        weight = dict((layer if own.owner is None else self.of_name[own.owner]).tensors).get("weight", (1, 1))
        groups = int(node.attributes.get("group", 1))
        if len(weight) == 1:  # a vector, with which everything is multiplied
            weight = (1, *weight)
        columns, rows = weight[0], weight[1] if groups == 1 else 1
        if groups == columns and groups > 1 and len(weight) > 2 and weight[1] == 1:
            self._other(node, own, sources, self._alone(node.reads))
            return
        if own.owner is not None:
            columns, rows = _channels(node.outputs[0]), 1
        piece = Piece(
            layer.name, self._names(sources), (layer,), (), layer.inputs, layer.outputs, layer.outputs, columns, rows
        )
        calculated = any(
            numbers(weight) != numbers(node.operands[place])
            for place in node.weights
            if word(node, place) == "weight" and own.owner is None
        )
        self._add(_whole(piece) if layer.name in self.shared or calculated else piece, columns)

    def _other(self, node: Node, own: OnnxLayer, sources: tuple[int, ...], alone: bool) -> None:
        """What is not cut by its weights."""
        layer, outputs = own.layer, self._outputs(node)
        whole, after = not _by_channel(own, node), (layer,) if _counts(layer) else ()
        if own.kind == "Gather" and layer.tensors:
            rows = dict(layer.tensors)["weight"][0]
            piece = Piece(layer.name, self._names(sources), (layer,), (), outputs, outputs, outputs, 1, rows)
            self._add(_whole(piece) if layer.name in self.shared else piece, _channels(node.outputs[0]))
            return
        if alone and len(sources) == 1:
            part = self.parts[sources[0]]
            if not (whole and part.piece.split):
                columns = 1 if whole else part.piece.columns
                part.piece = replace(part.piece, after=part.piece.after + after, outputs=outputs, columns=columns)
                self.given.append(sources)
                return
        channels = max((self.parts[source].channels for source in sources), default=0)
        if own.kind in DENSE:  # a product of two activations: heads, if any, by themselves
            channels = node.outputs[0][1] if len(node.outputs[0]) >= _LEAST_IMAGE else 1
        elif len(node.outputs[0]) >= _LEAST_IMAGE:
            channels = node.outputs[0][1]
        channels = channels or _channels(node.outputs[0])
        inputs = layer.inputs if after else outputs
        name = layer.name
        piece = Piece(name, self._names(sources), (), after, inputs, 0, outputs, 1 if whole else channels, 1)
        self._add(_whole(piece) if name in self.shared else piece, channels)

    def _names(self, sources: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(self.parts[source].piece.name for source in sources)

    def _add(self, piece: Piece, channels: int) -> None:
        self.parts.append(_Part(piece, channels))
        self.given.append((len(self.parts) - 1,))


def _counts(layer: Layer) -> bool:
    """Whether it is more than handing numbers on."""
    return bool(layer.tensors or layer.flops or layer.inputs)


def _whole(piece: Piece) -> Piece:
    """A piece whose weights others use as well, so that every server has them."""
    return replace(piece, columns=1, rows=1, everywhere=True)


def _shuffles(node: Node) -> bool:
    """Whether channels in groups change places, as in ShuffleNet."""
    return (
        node.kind == "Transpose"
        and len(node.outputs[0]) > _LEAST_IMAGE
        and list(node.attributes.get("perm", ()))[1:3] == [2, 1]
    )


def _by_channel(own: OnnxLayer, node: Node) -> bool:
    """Whether every channel of the output depends on the same one of the input alone."""
    if own.kind in _BY_CHANNEL or own.kind in DENSE or (own.kind in _MEET and own.known):
        return True
    if not own.known or own.kind in ("LRN", "ArgMax", "LSTM", "GRU", "RNN", *_OF_ALL):
        return False
    before, after = node.inputs[0], node.outputs[0]
    return len(before) >= _LEAST_IMAGE and before[:2] == after[:2] and not _shuffles(node)


def _channels(shape: Shape) -> int:
    return shape[1] if len(shape) >= _LEAST_IMAGE else shape[-1] if shape else 1
