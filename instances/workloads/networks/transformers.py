"""Transformers of any size: layers with their shapes, and the training step as a graph of operators.

With hidden size h, a heads of d numbers and c of keys and values, feed-forward width w and V words, a block has
h (a d) + 2 h (c d) + (a d) h parameters in attention, 2 h w in a plain and 3 h w in a gated feed-forward layer, and h
or 2 h in each of two normalisations, besides biases. Where there are E experts, each is a feed-forward layer, a router
of h E parameters sends every token to k of them, and every expert is taken to get the same number, rounded up.
"""

import dataclasses
from dataclasses import dataclass
from typing import Literal

from ddlopt.instances.workloads.networks.layers import Layer, dense, normalisation, word_embedding
from ddlopt.instances.workloads.networks.network_graphs import Step
from ddlopt.instances.workloads.networks.training_graph import Tape
from ddlopt.instances.workloads.training import Workload


@dataclass(frozen=True)
class Transformer:
    """The sizes of a transformer.

    Parameters
    ----------
    name : str
    layers, hidden, heads, vocabulary : int
    width : int
        Of the feed-forward layer.
    sequence : int
        Tokens of a sample.
    key_value_heads : int
    head : int
        Numbers of a head.
    positions, segments : int
        Rows of these tables; 0 where positions are not trained, and where there are no segments.
    gated : bool
        Whether the feed-forward layer multiplies two projections (SwiGLU and its kin).
    norm_first : bool
        Whether normalisation comes before attention and feed-forward layer, and once more at the end, or after each.
    norm_shift : bool
        Whether normalisation has a shift (layer normalisation) or only a scale (root mean square).
    fused : bool
        Whether query, key and value are one projection.
    qkv_bias, output_bias, feed_bias : bool
        Of query, key and value, of the projection behind the heads, and of the feed-forward layer.
    head_layer : {"words", "tied", "masked", "pooler", "none"}
        What comes at the end: a layer over all words, with its own weights or with the table's; the latter with a bias,
        behind a dense layer and a normalisation (BERT's for masked words); a dense layer on the first position.
    labels : int
        Classes that a layer behind that one tells apart; 0 where there is no such layer.
    label_bias : bool
        Of that layer.
    experts, chosen : int
        0 where there are none.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    vocabulary: int
    width: int
    sequence: int
    key_value_heads: int
    head: int
    positions: int = 0
    segments: int = 0
    gated: bool = False
    norm_first: bool = True
    norm_shift: bool = True
    fused: bool = False
    qkv_bias: bool = True
    output_bias: bool = True
    feed_bias: bool = True
    head_layer: Literal["words", "tied", "masked", "pooler", "none"] = "words"
    labels: int = 0
    label_bias: bool = True
    experts: int = 0
    chosen: int = 0

    @property
    def tied(self) -> bool:
        """Whether the last layer has the weights of the table of words."""
        return self.head_layer in ("tied", "masked")

    @property
    def tables(self) -> dict[str, Layer]:
        """Tables of words, positions and segments, by name."""
        rows = {"words": self.vocabulary, "positions": self.positions, "segments": self.segments}
        return {
            name: word_embedding(f"embedding.{name}", count, self.hidden, self.sequence)
            for name, count in rows.items()
            if count
        }

    def norm(self, name: str) -> Layer:
        """A normalisation of all positions."""
        layer = normalisation(name, self.hidden, self.sequence)
        if self.norm_shift:
            return layer
        return dataclasses.replace(layer, parameters=self.hidden, tensors=(("scale", (self.hidden,)),))

    def projections(self, block: str) -> dict[str, Layer]:
        """Query, key and value, or the one layer that is all three."""
        queries, keys = self.heads * self.head, self.key_value_heads * self.head
        widths = {"query": queries, "key": keys, "value": keys}
        if self.fused:
            widths = {"projections": queries + 2 * keys}
        return {
            part: dense(f"{block}.attention.{part}", self.hidden, width, self.qkv_bias, self.sequence)
            for part, width in widths.items()
        }

    def products(self, block: str) -> Layer:
        """Queries with keys, and the weights that follow with values; keys and values are read once for their heads."""
        queries, keys = self.heads * self.head, self.key_value_heads * self.head
        return Layer(
            f"{block}.attention.products",
            0,
            flops=2 * 2 * self.sequence**2 * queries,
            inputs=self.sequence * (queries + 2 * keys),
            outputs=self.sequence * queries,
        )

    def output(self, block: str) -> Layer:
        """The projection behind the heads."""
        return dense(f"{block}.attention.output", self.heads * self.head, self.hidden, self.output_bias, self.sequence)

    def feed(self, name: str, rows: int) -> tuple[tuple[Layer, ...], Layer]:
        """What widens, one layer or two, and what narrows."""
        wide = ("gate", "up") if self.gated else ("0",)
        narrow = "down" if self.gated else "1"
        return (
            tuple(dense(f"{name}.{part}", self.hidden, self.width, self.feed_bias, rows) for part in wide),
            dense(f"{name}.{narrow}", self.width, self.hidden, self.feed_bias, rows),
        )

    def router(self, block: str) -> Layer:
        """The layer that chooses experts."""
        return dense(f"{block}.router", self.hidden, self.experts, bias=False, rows=self.sequence)

    def experts_of(self, block: str) -> tuple[tuple[tuple[Layer, ...], Layer], ...]:
        """The feed-forward layers of a block with experts."""
        rows = -(-self.sequence * self.chosen // self.experts)
        return tuple(self.feed(f"{block}.experts.{expert}", rows) for expert in range(self.experts))

    def pooler(self) -> Layer:
        """The dense layer on the first position."""
        return dense("pooler", self.hidden, self.hidden)

    def transform(self) -> Layer:
        """The dense layer before masked words are told."""
        return dense("transform", self.hidden, self.hidden, rows=self.sequence)

    def words(self) -> Layer:
        """The layer over all words; where it is tied, its weights are the table's."""
        layer = dense("words", self.hidden, self.vocabulary, self.head_layer == "masked", rows=self.sequence)
        if not self.tied:
            return layer
        own = tuple((tensor, shape) for tensor, shape in layer.tensors if tensor == "bias")
        return dataclasses.replace(layer, parameters=self.vocabulary * len(own), tensors=own)

    def classes(self) -> Layer:
        """The layer over the labels, on every position or on what the pooler made."""
        rows = 1 if self.head_layer == "pooler" else self.sequence
        return dense("classes", self.hidden, self.labels, self.label_bias, rows)

    def ends(self) -> tuple[Layer, ...]:
        """The layers behind the last block and its normalisation."""
        match self.head_layer:
            case "pooler":
                layers: tuple[Layer, ...] = (self.pooler(),)
            case "masked":
                layers = (self.transform(), self.norm("transform.norm"), self.words())
            case "none":
                layers = ()
            case _:
                layers = (self.words(),)
        return (*layers, self.classes()) if self.labels else layers

    def blocks(self) -> tuple[str, ...]:
        """Names of the blocks."""
        return tuple(f"block.{place}" for place in range(self.layers))

    def workload(self, batch_per_gpu: int) -> Workload:
        """All layers, in the order in which they run."""
        stack = list(self.tables.values())
        stack += [] if self.norm_first else [self.norm("embedding.norm")]
        for block in self.blocks():
            attention = [*self.projections(block).values(), self.products(block), self.output(block)]
            first, second = self.norm(f"{block}.norm.0"), self.norm(f"{block}.norm.1")
            fed = self._fed(block)
            stack += [first, *attention, second, *fed] if self.norm_first else [*attention, first, *fed, second]
        stack += [self.norm("norm")] if self.norm_first else []
        return Workload(self.name, (*stack, *self.ends()), batch_per_gpu)

    def _fed(self, block: str) -> list[Layer]:
        if not self.experts:
            wide, narrow = self.feed(f"{block}.feed", self.sequence)
            return [*wide, narrow]
        return [self.router(block), *(each for wide, narrow in self.experts_of(block) for each in (*wide, narrow))]

    def step(self) -> Step:
        """The training step, for one sample."""
        return _Wiring(self).step()


class _Wiring:
    """The layers of a transformer on a tape."""

    def __init__(self, sizes: Transformer) -> None:
        self.sizes = sizes
        self.tape = Tape(["embedding.words"] if sizes.tied else [])

    def step(self) -> Step:
        sizes, tape = self.sizes, self.tape
        tokens = tape.data("tokens", sizes.sequence)
        segments = tape.data("segments", sizes.sequence) if sizes.segments else tokens
        rows = [tape.lookup(table, segments if name == "segments" else tokens) for name, table in sizes.tables.items()]
        inner = tape.addition("embedding.add", *rows) if len(rows) > 1 else rows[0]
        inner = inner if sizes.norm_first else tape.normalisation(sizes.norm("embedding.norm"), inner)
        for block in sizes.blocks():
            inner = self._block(block, inner)
        inner = tape.normalisation(sizes.norm("norm"), inner) if sizes.norm_first else inner
        return self._end(inner, tokens)

    def _end(self, inner: int, tokens: int) -> Step:
        sizes, tape = self.sizes, self.tape
        if sizes.head_layer == "pooler":
            first = tape.unary("first", inner, sizes.hidden)
            inner = tape.unary("pooler.tanh", tape.linear(sizes.pooler(), first), needs=("output",))
        elif sizes.head_layer != "none":
            if sizes.head_layer == "masked":
                inner = tape.unary("transform.gelu", tape.linear(sizes.transform(), inner), needs=("input",))
                inner = tape.normalisation(sizes.norm("transform.norm"), inner)
            inner = tape.linear(sizes.words(), inner, sizes.tables["words"] if sizes.tied else None)
        if sizes.labels:
            inner = tape.linear(sizes.classes(), inner)
        told = sizes.labels or sizes.head_layer == "pooler"
        return tape.loss(inner, tape.data("labels", 1) if told else tokens)

    def _block(self, block: str, inner: int) -> int:
        sizes, tape = self.sizes, self.tape
        first, second = sizes.norm(f"{block}.norm.0"), sizes.norm(f"{block}.norm.1")
        if sizes.norm_first:
            inner = tape.addition(f"{block}.add.0", self._attention(block, tape.normalisation(first, inner)), inner)
            return tape.addition(f"{block}.add.1", self._fed(block, tape.normalisation(second, inner)), inner)
        inner = tape.normalisation(first, tape.addition(f"{block}.norm.0.add", self._attention(block, inner), inner))
        return tape.normalisation(second, tape.addition(f"{block}.norm.1.add", self._fed(block, inner), inner))

    def _attention(self, block: str, source: int) -> int:
        sizes, tape, name = self.sizes, self.tape, f"{block}.attention"
        parts = [tape.linear(layer, source) for layer in sizes.projections(block).values()]
        if sizes.fused:
            parts = tape.split(f"{name}.parts", parts[0], ("query", "key", "value"))
        query, key, value = parts
        layer = sizes.products(block)
        scores = tape.product(f"{name}.scores", query, key, sizes.heads * sizes.sequence**2, layer.flops // 2)
        weights = tape.unary(f"{name}.softmax", scores, needs=("output",))
        seen = tape.product(f"{name}.context", weights, value, layer.outputs, layer.flops // 2)
        return tape.linear(sizes.output(block), seen)

    def _fed(self, block: str, source: int) -> int:
        sizes, tape = self.sizes, self.tape
        if not sizes.experts:
            return self._feed(f"{block}.feed", sizes.feed(f"{block}.feed", sizes.sequence), source)
        scores = tape.linear(sizes.router(block), source)
        weights = tape.unary(f"{block}.router.softmax", scores, needs=("output",))
        given = []
        for place, layers in enumerate(sizes.experts_of(block)):
            name = f"{block}.experts.{place}"
            given.append(self._feed(name, layers, tape.unary(f"{name}.tokens", source, layers[0][0].inputs)))
        together = tape.concatenation(f"{block}.experts", given)
        flops = 2 * sizes.chosen * sizes.sequence * sizes.hidden
        return tape.product(f"{block}.experts.sum", together, weights, sizes.sequence * sizes.hidden, flops)

    def _feed(self, name: str, layers: tuple[tuple[Layer, ...], Layer], source: int) -> int:
        tape, (wide, narrow) = self.tape, layers
        if not self.sizes.gated:
            return tape.linear(narrow, tape.unary(f"{name}.gelu", tape.linear(wide[0], source), needs=("input",)))
        gate = tape.unary(f"{name}.gate.silu", tape.linear(wide[0], source), needs=("input",))
        inner = tape.product(f"{name}.gated", gate, tape.linear(wide[1], source), wide[0].outputs, 0)
        return tape.linear(narrow, inner)
