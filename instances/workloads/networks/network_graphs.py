"""How the layers of a network are connected: its training step as a graph of operators.

A workload lists what has parameters or costs operations; here are added what the layers read, activation functions,
residual additions and the loss. Every layer of the workload is used, with its own counts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ddlopt.instances.workloads.networks import published as networks
from ddlopt.instances.workloads.networks.inception import inception_step, inception_v3
from ddlopt.instances.workloads.networks.layers import Layer
from ddlopt.instances.workloads.networks.training_graph import GraphOperator, Tape
from ddlopt.instances.workloads.training import Workload
from ddlopt.models.errors import UnknownNameError

Step = tuple[GraphOperator, ...]


class _Wiring:
    """A tape that takes a workload's layers by name."""

    def __init__(self, workload: Workload, shared: str = "") -> None:
        self.tape = Tape([shared] if shared else [])
        self.layers = {layer.name: layer for layer in workload.layers}
        self.owner = self.layers.get(shared)

    def linear(self, name: str, source: int) -> int:
        layer = self.layers[name]
        return self.tape.linear(layer, source, None if layer.tensors else self.owner)

    def lookup(self, name: str, indices: int) -> int:
        layer = self.layers[name]
        return self.tape.lookup(layer, indices, None if layer.tensors else self.owner)

    def norm(self, name: str, source: int) -> int:
        return self.tape.normalisation(self.layers[name], source)

    def relu(self, name: str, source: int) -> int:
        return self.tape.unary(f"{name}.relu", source, needs=("output",))

    def gelu(self, name: str, source: int) -> int:
        return self.tape.unary(f"{name}.gelu", source, needs=("input",))

    # Convolutional networks

    def pool(self, layer: Layer, source: int, mean: bool = False) -> int:
        return self.tape.unary(layer.name, source, layer.outputs, layer.flops, () if mean else ("input", "output"))

    def normalised(self, name: str, source: int) -> int:
        inner = self.linear(f"{name}.conv", source)
        return self.tape.normalisation(self.layers[f"{name}.norm"], inner, over_batch=True)

    def bottleneck(self, name: str, source: int) -> int:
        inner = source
        for place in (0, 1):
            inner = self.relu(f"{name}.{place}", self.normalised(f"{name}.{place}", inner))
        inner = self.normalised(f"{name}.2", inner)
        shortcut = self.normalised(f"{name}.shortcut", source) if f"{name}.shortcut.conv" in self.layers else source
        return self.relu(name, self.tape.addition(f"{name}.add", inner, shortcut))

    # Transformers

    def products(self, name: str, query: int, key: int, value: int, heads: int) -> int:
        """Softmax of queries with keys, times values; the weights are one number a head and pair of positions."""
        layer = self.layers[f"{name}.products"]
        pairs = heads * _positions(layer) ** 2
        scores = self.tape.product(f"{name}.scores", query, key, pairs, layer.flops // 2)
        weights = self.tape.unary(f"{name}.softmax", scores, needs=("output",))
        return self.tape.product(f"{name}.context", weights, value, layer.outputs, layer.flops // 2)

    def attention(self, name: str, source: int, memory: int, heads: int) -> int:
        query = self.linear(f"{name}.query", source)
        key, value = (self.linear(f"{name}.{part}", memory) for part in ("key", "value"))
        return self.linear(f"{name}.output", self.products(name, query, key, value, heads))

    def feed_forward(self, name: str, source: int, activation: Callable[[str, int], int]) -> int:
        return self.linear(f"{name}.feed.1", activation(f"{name}.feed", self.linear(f"{name}.feed.0", source)))

    def add_norm(self, name: str, inner: int, source: int) -> int:
        """The residual connection, then its normalisation."""
        return self.norm(name, self.tape.addition(f"{name}.add", inner, source))

    def encoder_block(self, name: str, source: int, heads: int, activation: Callable[[str, int], int]) -> int:
        middle = self.add_norm(f"{name}.norm.0", self.attention(f"{name}.attention", source, source, heads), source)
        return self.add_norm(f"{name}.norm.1", self.feed_forward(name, middle, activation), middle)

    def decoder_block(self, name: str, source: int, memory: int, heads: int) -> int:
        first = self.add_norm(f"{name}.norm.0", self.attention(f"{name}.attention", source, source, heads), source)
        second = self.add_norm(f"{name}.norm.1", self.attention(f"{name}.memory", first, memory, heads), first)
        return self.add_norm(f"{name}.norm.2", self.feed_forward(name, second, self.relu), second)


def _positions(products: Layer) -> int:
    """Sequence length: the products of s queries with s keys cost 4 s² h operations, their output is s h numbers."""
    return products.flops // (4 * products.outputs)


def vgg_step(workload: Workload) -> Step:
    """VGG: a chain, with ReLU after all but the last layer."""
    wiring = _Wiring(workload)
    last = workload.layers[-1]
    inner = wiring.tape.data("images", workload.layers[0].inputs)
    for layer in workload.layers:
        if not layer.parameters:
            inner = wiring.pool(layer, inner)
            continue
        inner = wiring.linear(layer.name, inner)
        if layer is not last:
            inner = wiring.relu(layer.name, inner)
    return wiring.tape.loss(inner, wiring.tape.data("labels", 1))


def resnet_step(workload: Workload) -> Step:
    """ResNet: batch normalisation after convolutions, ReLU after normalisations and additions."""
    wiring = _Wiring(workload)
    inner = wiring.tape.data("images", workload.layers[0].inputs)
    inner = wiring.relu("stem", wiring.normalised("stem", inner))
    inner = wiring.pool(wiring.layers["stem.pool"], inner)
    for name in dict.fromkeys(name.rsplit(".", 2)[0] for name in wiring.layers if name.startswith("stage")):
        inner = wiring.bottleneck(name, inner)
    inner = wiring.pool(wiring.layers["pool"], inner, mean=True)
    return wiring.tape.loss(wiring.linear("classes", inner), wiring.tape.data("labels", 1))


def bert_step(workload: Workload, heads: int) -> Step:
    """BERT: the first position's output goes to the pooler, and what it gives to the loss."""
    wiring = _Wiring(workload)
    tape, sequence = wiring.tape, _positions(wiring.layers["block.0.attention.products"])
    tokens, segments = tape.data("tokens", sequence), tape.data("segments", sequence)
    tables = (("words", tokens), ("positions", tokens), ("segments", segments))
    rows = [wiring.lookup(f"embedding.{table}", indices) for table, indices in tables]
    inner = wiring.norm("embedding.norm", tape.addition("embedding.add", *rows))
    for name in _blocks(workload, "block"):
        inner = wiring.encoder_block(name, inner, heads, wiring.gelu)
    first = tape.unary("first", inner, wiring.layers["pooler"].inputs)
    pooled = tape.unary("pooler.tanh", wiring.linear("pooler", first), needs=("output",))
    return tape.loss(pooled, tape.data("labels", 1))


def gpt2_step(workload: Workload, heads: int) -> Step:
    """GPT-2: normalisation inside the residual connections; the labels are the next tokens."""
    wiring = _Wiring(workload, shared="embedding.words")
    tape = wiring.tape
    tokens = tape.data("tokens", _positions(wiring.layers["block.0.attention.products"]))
    rows = [wiring.lookup(f"embedding.{table}", tokens) for table in ("words", "positions")]
    inner = tape.addition("embedding.add", *rows)
    for name in _blocks(workload, "block"):
        projected = wiring.linear(f"{name}.attention.projections", wiring.norm(f"{name}.norm.0", inner))
        query, key, value = tape.split(f"{name}.attention.parts", projected, ("query", "key", "value"))
        seen = wiring.products(f"{name}.attention", query, key, value, heads)
        inner = tape.addition(f"{name}.add.0", wiring.linear(f"{name}.attention.output", seen), inner)
        fed = wiring.feed_forward(name, wiring.norm(f"{name}.norm.1", inner), wiring.gelu)
        inner = tape.addition(f"{name}.add.1", fed, inner)
    return tape.loss(wiring.linear("words", wiring.norm("norm", inner)), tokens)


def transformer_step(workload: Workload, heads: int) -> Step:
    """Transformer: an encoder, and a decoder whose blocks read the encoder's output."""
    wiring = _Wiring(workload, shared="embedding.source")
    tape, sequence = wiring.tape, _positions(wiring.layers["encoder.0.attention.products"])
    memory = wiring.lookup("embedding.source", tape.data("source", sequence))
    for name in _blocks(workload, "encoder"):
        memory = wiring.encoder_block(name, memory, heads, wiring.relu)
    inner = wiring.lookup("embedding.target", tape.data("target", sequence))
    for name in _blocks(workload, "decoder"):
        inner = wiring.decoder_block(name, inner, memory, heads)
    return tape.loss(wiring.linear("words", inner), tape.data("labels", sequence))


def _blocks(workload: Workload, kind: str) -> list[str]:
    """Names of the blocks of one kind, in order."""
    names = (layer.name.split(".") for layer in workload.layers)
    return list(dict.fromkeys(f"{kind}.{parts[1]}" for parts in names if parts[0] == kind))


@dataclass(frozen=True)
class _Model:
    """A workload for a batch per GPU, and its step."""

    workload: Callable[[int], Workload]
    step: Callable[[Workload], Step]


_MODELS = {
    "vgg16": _Model(networks.vgg16, vgg_step),
    "vgg19": _Model(networks.vgg19, vgg_step),
    "resnet50": _Model(networks.resnet50, resnet_step),
    "resnet101": _Model(networks.resnet101, resnet_step),
    "inception-v3": _Model(inception_v3, inception_step),
    "bert-small": _Model(lambda batch: networks.bert(4, 512, 128, batch), partial(bert_step, heads=8)),
    "bert-base": _Model(lambda batch: networks.bert(12, 768, 128, batch), partial(bert_step, heads=12)),
    "bert-large": _Model(lambda batch: networks.bert(24, 1024, 128, batch), partial(bert_step, heads=16)),
    "gpt2": _Model(networks.gpt2, partial(gpt2_step, heads=12)),
    "transformer-base": _Model(networks.transformer, partial(transformer_step, heads=8)),
}

MODELS = tuple(_MODELS)
"""Names; BERT on sequences of 128 (the small one has 4 blocks of 512 numbers), GPT-2 on its 1024, the Transformer on
sentences of 32 tokens."""


def training_step(model: str) -> Step:
    """The operators of a training step of one of :data:`MODELS`, each after those it reads.

    Raises
    ------
    UnknownNameError
        If there is no such model.
    """
    found = _model(model)
    return found.step(found.workload(1))


def network(model: str, batch: int) -> Workload:
    """The workload of one of :data:`MODELS` with ``batch`` samples a GPU.

    Raises
    ------
    UnknownNameError
        If there is no such model.
    """
    return _model(model).workload(batch)


def _model(name: str) -> _Model:
    if name not in _MODELS:
        raise UnknownNameError(f"there is no model '{name}'; there are: {', '.join(MODELS)}")
    return _MODELS[name]
