"""Transformers of any size: layers with their shapes.

With hidden size h, a heads of d numbers and c of keys and values, feed-forward width w and V words, a block has
h (a d) + 2 h (c d) + (a d) h parameters in attention, 2 h w in a plain and 3 h w in a gated feed-forward layer, and h
or 2 h in each of two normalisations, besides biases. Where there are E experts, each is a feed-forward layer, a router
of h E parameters sends every token to k of them, and every expert is taken to get the same number, rounded up.
"""

import dataclasses
from dataclasses import dataclass
from typing import Literal

from ddlopt.instances.workloads.networks.layers import Layer, dense, normalisation, word_embedding
from ddlopt.instances.workloads.training import Workload


@dataclass(frozen=True)
class Latent:
    """Attention whose queries, and keys and values, are made from short vectors (DeepSeek-V2, arXiv:2405.04434).

    Parameters
    ----------
    queries, keys : int
        Numbers of a token's vector for queries, and of that for keys and values; 0 where queries are made directly.
    unturned, turned : int
        Numbers of a head's queries and keys without and with rotary positions; the latter of keys are all heads' own.
    values : int
        Numbers of a head's values.
    """

    queries: int
    keys: int
    unturned: int
    turned: int
    values: int


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
    expert_width, shared_width : int
        Of an expert, if it is not ``width``, and of the feed-forward layer that all tokens visit besides; 0 where there
        is none.
    shared_gate, router_bias : bool
        Whether that layer is weighed by a product of its own, and whether the router has a bias.
    plain : frozenset of int
        Blocks without experts.
    latent : Latent, optional
    head_norms : bool
        Whether the queries and keys of a head are normalised.
    sinks : bool
        Whether every head has a trained score besides those of the tokens.
    norms_behind : bool
        Whether attention and feed-forward layer are normalised once more before they are added.
    parallel : int
        How many normalisations there are before attention and feed-forward layer where both read the same; 0 where the
        latter reads the former's sum.
    embedding_norm, words_bias : bool
        Whether the table's rows are normalised, and whether the last layer has a bias.
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
    expert_width: int = 0
    shared_width: int = 0
    shared_gate: bool = False
    router_bias: bool = False
    plain: frozenset[int] = frozenset()
    latent: Latent | None = None
    head_norms: bool = False
    sinks: bool = False
    norms_behind: bool = False
    parallel: int = 0
    embedding_norm: bool = False
    words_bias: bool = False

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
        return layer if self.norm_shift else _scaled(layer)

    def norms(self, block: str) -> tuple[Layer, ...]:
        """Those before attention and feed-forward layer, or behind them."""
        return tuple(self.norm(f"{block}.norm.{place}") for place in range(self.parallel or 2))

    def added_norms(self, block: str) -> tuple[Layer, ...]:
        """Those of what attention and feed-forward layer give, before it is added."""
        return tuple(self.norm(f"{block}.norm.{place}") for place in (2, 3)) if self.norms_behind else ()

    def latents(self, block: str) -> dict[str, tuple[Layer, Layer]]:
        """Layers that make a token's short vectors, each with its normalisation."""
        if self.latent is None:
            return {}
        widths = {"query": self.latent.queries, "keys": self.latent.keys}
        more = {"query": 0, "keys": self.latent.turned}
        return {
            part: (
                dense(f"{block}.attention.{part}.down", self.hidden, width + more[part], False, self.sequence),
                _scaled(normalisation(f"{block}.attention.{part}.norm", width, self.sequence)),
            )
            for part, width in widths.items()
            if width
        }

    def head_norms_of(self, block: str) -> dict[str, Layer]:
        """Normalisations of queries and keys."""
        counts = {"query": self.heads, "key": self.key_value_heads} if self.head_norms else {}
        return {
            part: _scaled(normalisation(f"{block}.attention.{part}.norm", self.head, count * self.sequence))
            for part, count in counts.items()
        }

    def projections(self, block: str) -> dict[str, Layer]:
        """Query, key and value, or the one layer that is all three; from short vectors where there are such."""
        if (latent := self.latent) is not None:
            width = self.heads * (latent.unturned + latent.turned)
            given = latent.queries or self.hidden
            made = self.heads * (latent.unturned + latent.values)
            return {
                "query": dense(f"{block}.attention.query", given, width, False, self.sequence),
                "keys": dense(f"{block}.attention.keys", latent.keys, made, False, self.sequence),
            }
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
        head, values = self.head, self.value_head
        numbers = self.heads * head + self.key_value_heads * (head + values)
        return Layer(
            f"{block}.attention.products",
            self.heads * self.sinks,
            flops=2 * self.sequence**2 * self.heads * (head + values),
            inputs=self.sequence * numbers,
            outputs=self.sequence * self.heads * values,
            tensors=(("scale", (self.heads,)),) if self.sinks else (),
        )

    @property
    def value_head(self) -> int:
        """Numbers of a head's values."""
        return self.head if self.latent is None else self.latent.values

    def output(self, block: str) -> Layer:
        """The projection behind the heads."""
        width = self.heads * self.value_head
        return dense(f"{block}.attention.output", width, self.hidden, self.output_bias, self.sequence)

    def feed(self, name: str, rows: int, width: int = 0) -> tuple[tuple[Layer, ...], Layer]:
        """What widens, one layer or two, and what narrows; ``width``: if it is another one."""
        width = width or self.width
        wide = ("gate", "up") if self.gated else ("0",)
        narrow = "down" if self.gated else "1"
        return (
            tuple(dense(f"{name}.{part}", self.hidden, width, self.feed_bias, rows) for part in wide),
            dense(f"{name}.{narrow}", width, self.hidden, self.feed_bias, rows),
        )

    def router(self, block: str) -> Layer:
        """The layer that chooses experts."""
        return dense(f"{block}.router", self.hidden, self.experts, self.router_bias, rows=self.sequence)

    def has_experts(self, block: str) -> bool:
        """Whether the feed-forward layer of a block is several."""
        return self.experts > 0 and int(block.rpartition(".")[2]) not in self.plain

    def shared(self, block: str) -> tuple[tuple[Layer, ...], Layer] | None:
        """The feed-forward layer that all tokens visit besides their experts."""
        return self.feed(f"{block}.shared", self.sequence, self.shared_width) if self.shared_width else None

    def shared_gates(self, block: str) -> tuple[Layer, ...]:
        """What weighs that layer."""
        return (dense(f"{block}.shared.weight", self.hidden, 1, False, self.sequence),) if self.shared_gate else ()

    def active_parameters(self) -> int:
        """Parameters that a token meets: all but those of experts that it is not sent to."""
        left = self.experts - self.chosen
        unused = (
            left * sum(layer.parameters for layer in (*wide, narrow))
            for block in self.blocks()
            if self.has_experts(block)
            for wide, narrow in self.experts_of(block)[:1]
        )
        return self.workload(1).parameters - sum(unused)

    def experts_of(self, block: str) -> tuple[tuple[tuple[Layer, ...], Layer], ...]:
        """The feed-forward layers of a block with experts."""
        rows = -(-self.sequence * self.chosen // self.experts)
        width = self.expert_width
        return tuple(self.feed(f"{block}.experts.{expert}", rows, width) for expert in range(self.experts))

    def pooler(self) -> Layer:
        """The dense layer on the first position."""
        return dense("pooler", self.hidden, self.hidden)

    def transform(self) -> Layer:
        """The dense layer before masked words are told."""
        return dense("transform", self.hidden, self.hidden, rows=self.sequence)

    def words(self) -> Layer:
        """The layer over all words; where it is tied, its weights are the table's."""
        bias = self.words_bias or self.head_layer == "masked"
        layer = dense("words", self.hidden, self.vocabulary, bias, rows=self.sequence)
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
        stack += [] if self.norm_first and not self.embedding_norm else [self.norm("embedding.norm")]
        for block in self.blocks():
            short = [layer for pair in self.latents(block).values() for layer in pair]
            projections = [*short, *self.projections(block).values(), *self.head_norms_of(block).values()]
            attention = [*projections, self.products(block), self.output(block)]
            first, *second = self.norms(block)
            third = self.added_norms(block)
            fed = [*third[:1], *second, *self._fed(block), *third[1:]]
            stack += [first, *attention, *fed] if self.norm_first else [*attention, first, *self._fed(block), *second]
        stack += [self.norm("norm")] if self.norm_first else []
        return Workload(self.name, (*stack, *self.ends()), batch_per_gpu)

    def _fed(self, block: str) -> list[Layer]:
        if not self.has_experts(block):
            wide, narrow = self.feed(f"{block}.feed", self.sequence)
            return [*wide, narrow]
        shared = self.shared(block)
        besides = [*self.shared_gates(block), *shared[0], shared[1]] if shared else []
        experts = (each for wide, narrow in self.experts_of(block) for each in (*wide, narrow))
        return [self.router(block), *experts, *besides]


def _scaled(norm: Layer) -> Layer:
    """A normalisation without a shift."""
    (channels,) = norm.tensors[0][1]
    return dataclasses.replace(norm, parameters=channels, tensors=norm.tensors[:1])
