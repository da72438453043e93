"""Transformers of any size: layers with their shapes.

With hidden size h, a heads of d numbers and c of keys and values, feed-forward width w and V words, a block has
h (a d) + 2 h (c d) + (a d) h parameters in attention, 2 h w in a plain and 3 h w in a gated feed-forward layer, and h
or 2 h in each of two normalisations, besides biases. Where there are E experts, each is a feed-forward layer, a router
of h E parameters sends every token to k of them, and every expert is taken to get the same number, rounded up.
"""

import dataclasses
import math
from dataclasses import dataclass

from ddlopt.instances.workloads.networks.layers import Layer, dense, normalisation, word_embedding
from ddlopt.instances.workloads.networks.transformer_parts import Heads, Part
from ddlopt.instances.workloads.networks.transformer_sizes import Sizes
from ddlopt.instances.workloads.training import Workload


@dataclass(frozen=True)
class Transformer(Sizes):
    """The layers of a transformer, or of the decoder of one that has an encoder besides.

    Parameters
    ----------
    encoder : Transformer, optional
        Whose result the blocks see; its table of words is this one's, too.
    """

    encoder: "Transformer | None" = None

    def parts(self, block: str) -> tuple[Part, ...]:
        """What a block consists of, in order."""
        if self.pattern:
            return self.pattern[_place(block)]
        return ("attention", "feed") if self.encoder is None else ("attention", "cross", "feed")

    def heads_of(self, block: str) -> Heads:
        """Sizes of the heads of a block."""
        usual = Heads(self.head, self.key_value_heads)
        return self.full_heads or usual if _place(block) in self.full else usual

    @property
    def shares_words(self) -> bool:
        """Whether the table of words is the encoder's."""
        return self.encoder is not None and self.encoder.vocabulary > 0

    @property
    def table_of_words(self) -> Layer:
        """The table of words, whosever it is."""
        owner = self.encoder if self.encoder is not None and self.shares_words else self
        return owner.tables["words"]

    @property
    def tied(self) -> bool:
        """Whether the last layer has the weights of the table of words."""
        return self.head_layer in ("tied", "masked")

    @property
    def tables(self) -> dict[str, Layer]:
        """Tables of words, positions and segments, by name."""
        rows = {"words": self.vocabulary, "positions": self.positions, "segments": self.segments}
        rows["first"] = self.first_tokens
        found = {
            name: word_embedding(f"{self.prefix}embedding.{name}", count, self.hidden, self.sequence)
            for name, count in rows.items()
            if count
        }
        if self.shares_words:
            found["words"] = dataclasses.replace(found["words"], parameters=0, tensors=())
        return found

    def norm(self, name: str) -> Layer:
        """A normalisation of all positions."""
        layer = normalisation(name, self.hidden, self.sequence)
        return layer if self.norm_shift else _scaled(layer)

    def norms(self, block: str) -> tuple[Layer, ...]:
        """Those before the parts of a block, or behind them."""
        return tuple(self.norm(f"{block}.norm.{place}") for place in range(self.parallel or len(self.parts(block))))

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
        own = self.heads_of(block)
        heads = {"query": self.heads, "key": own.keys} if self.head_norms or self.joint_norms else {}
        return {
            part: _scaled(
                normalisation(f"{block}.attention.{part}.norm", own.head * count, self.sequence)
                if self.joint_norms
                else normalisation(f"{block}.attention.{part}.norm", own.head, count * self.sequence)
            )
            for part, count in heads.items()
        }

    def projections(self, block: str, kind: Part = "attention") -> dict[str, Layer]:
        """Query, key and value, or the one layer that is all three; from short vectors where there are such."""
        if (latent := self.latent) is not None:
            width = self.heads * (latent.unturned + latent.turned)
            given = latent.queries or self.hidden
            made = self.heads * (latent.unturned + latent.values)
            return {
                "query": dense(f"{block}.attention.query", given, width, False, self.sequence),
                "keys": dense(f"{block}.attention.keys", latent.keys, made, False, self.sequence),
            }
        own = self.heads_of(block)
        queries, keys = self.heads * own.head, own.keys * own.head
        widths = {"query": (1 + self.output_gate) * queries, "key": keys} | ({"value": keys} if own.values else {})
        if self.fused:
            widths = {"projections": queries + 2 * keys}
        biases = {"key": self.qkv_bias and self.key_bias}
        rows = {"key": self.seen(kind), "value": self.seen(kind)}
        return {
            part: dense(
                f"{block}.{kind}.{part}",
                self.hidden,
                width,
                biases.get(part, self.qkv_bias),
                rows.get(part, self.sequence),
            )
            for part, width in widths.items()
        }

    def seen(self, kind: Part) -> int:
        """Tokens whose keys attention reads."""
        return self.encoder.sequence if kind == "cross" and self.encoder is not None else self.sequence

    def products(self, block: str, kind: Part = "attention") -> Layer:
        """Queries with keys, and the weights that follow with values; keys and values are read once for their heads."""
        own, seen = self.heads_of(block), self.seen(kind)
        head, values = own.head, self.value_head(block)
        pairs = self.sequence * (seen if self.indexer is None else min(seen, self.indexer.chosen))
        shapes: list[tuple[int, ...]] = [(self.heads,)] if self.sinks else []
        if self.score_rows and kind == "attention" and _place(block) == 0:
            shapes.append((self.score_rows, self.heads))
        return Layer(
            f"{block}.{kind}.products",
            sum(math.prod(shape) for shape in shapes),
            flops=2 * pairs * self.heads * (head + values),
            inputs=self.sequence * self.heads * head + seen * own.keys * (head + values),
            outputs=self.sequence * self.heads * values,
            tensors=tuple(("scale", shape) for shape in shapes),
        )

    def value_head(self, block: str) -> int:
        """Numbers of a head's values."""
        return self.heads_of(block).head if self.latent is None else self.latent.values

    def output(self, block: str, kind: Part = "attention") -> Layer:
        """The projection behind the heads."""
        width = self.heads * self.value_head(block)
        return dense(f"{block}.{kind}.output", width, self.hidden, self.output_bias, self.sequence)

    def index(self, block: str) -> dict[str, Layer]:
        """Layers of the indexer: its queries, its keys with their normalisation, the weights of its heads, products."""
        if (indexer := self.indexer) is None:
            return {}
        name, rows = f"{block}.attention.index", self.sequence
        given = self.latent.queries if self.latent is not None and self.latent.queries else self.hidden
        numbers = indexer.heads * indexer.head
        products = Layer(
            f"{name}.products",
            0,
            flops=2 * rows**2 * numbers,
            inputs=rows * (numbers + indexer.head),
            outputs=rows * min(rows, indexer.chosen),
        )
        return {
            "query": dense(f"{name}.query", given, numbers, False, rows),
            "key": dense(f"{name}.key", self.hidden, indexer.head, False, rows),
            "norm": normalisation(f"{name}.norm", indexer.head, rows),
            "weights": dense(f"{name}.weights", self.hidden, indexer.heads, False, rows),
            "products": products,
        }

    def feed(self, name: str, rows: int, width: int = 0, hidden: int = 0) -> tuple[tuple[Layer, ...], Layer]:
        """What widens, one layer or two, and what narrows; ``width``, ``hidden``: if they are other ones."""
        width, hidden = width or self.width, hidden or self.hidden
        wide = ("gate", "up") if self.gated else ("0",)
        narrow = "down" if self.gated else "1"
        return (
            tuple(dense(f"{name}.{part}", hidden, width, self.feed_bias, rows) for part in wide),
            dense(f"{name}.{narrow}", width, hidden, self.feed_bias, rows),
        )

    def router(self, block: str) -> Layer:
        """The layer that chooses experts."""
        return dense(f"{block}.router", self.hidden, self.experts, self.router_bias, rows=self.sequence)

    def has_experts(self, block: str) -> bool:
        """Whether the feed-forward layer of a block is several."""
        return self.experts > 0 and "feed" in self.parts(block) and _place(block) not in self.plain

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
        return tuple(
            self.feed(f"{block}.experts.{expert}", rows, width, self.latent_experts) for expert in range(self.experts)
        )

    def around_experts(self, block: str) -> tuple[Layer, ...]:
        """What makes tokens shorter for the experts, and long again behind them."""
        if not self.latent_experts:
            return ()
        return (
            dense(f"{block}.experts.shorter", self.hidden, self.latent_experts, False, self.sequence),
            dense(f"{block}.experts.longer", self.latent_experts, self.hidden, False, self.sequence),
        )

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
        rows = 1 if self.head_layer in ("pooler", "first") else self.sequence
        return dense("classes", self.hidden, self.labels, self.label_bias, rows)

    def ends(self) -> tuple[Layer, ...]:
        """The layers behind the last block and its normalisation."""
        match self.head_layer:
            case "pooler":
                layers: tuple[Layer, ...] = (self.pooler(),)
            case "masked":
                layers = (self.transform(), self.norm("transform.norm"), self.words())
            case "none" | "first":
                layers = ()
            case _:
                layers = (self.words(),)
        return (*layers, self.classes()) if self.labels else layers

    def blocks(self) -> tuple[str, ...]:
        """Names of the blocks."""
        return tuple(f"{self.prefix}block.{place}" for place in range(self.layers))

    def workload(self, batch_per_gpu: int) -> Workload:
        """All layers, in the order in which they run."""
        encoded = self.encoder.stack() if self.encoder is not None else []
        return Workload(self.name, (*encoded, *self.stack(), *self.ends()), batch_per_gpu)

    def stack(self) -> list[Layer]:
        """The layers of the decoder, or of all where there is no encoder, without those at the end."""
        stack = [*self.stem, *self.tables.values()]
        stack += [] if self.norm_first and not self.embedding_norm else [self.norm(f"{self.prefix}embedding.norm")]
        for block in self.blocks():
            norms, behind = self.norms(block), self.added_norms(block)
            for place, part in enumerate(self.parts(block)):
                own, after = norms[place : place + 1], behind[place : place + 1]
                layers = self.layers_of(block, part)
                stack += [*own, *layers, *after] if self.norm_first else [*layers, *own]
        return stack + ([self.norm(f"{self.prefix}norm")] if self.norm_first else [])

    def layers_of(self, block: str, part: Part) -> list[Layer]:
        """The layers of a part of a block."""
        if part == "feed":
            return self._fed(block)
        if part == "mixer":
            into, *behind = self.mixing(block)
            return [*into, *behind]
        if part == "cross":
            return [*self.projections(block, part).values(), self.products(block, part), self.output(block, part)]
        short = [layer for pair in self.latents(block).values() for layer in pair]
        made = [*short, *self.projections(block).values(), *self.head_norms_of(block).values()]
        return [*made, *self.index(block).values(), self.products(block), self.output(block)]

    def mixing(self, block: str) -> tuple[tuple[Layer, ...], Layer, Layer]:
        """The dense layers into the mixer of a block, the recurrence, and the dense layer behind it."""
        assert self.mixer is not None
        name, rows = f"{block}.mixer", self.sequence
        mixer = self.mixer
        return mixer.into(name, self.hidden, rows), mixer.scan(name, rows), mixer.out(name, self.hidden, rows)

    def _fed(self, block: str) -> list[Layer]:
        if not self.has_experts(block):
            wide, narrow = self.feed(f"{block}.feed", self.sequence)
            return [*wide, narrow]
        shared = self.shared(block)
        besides = [*self.shared_gates(block), *shared[0], shared[1]] if shared else []
        experts = (each for wide, narrow in self.experts_of(block) for each in (*wide, narrow))
        return [self.router(block), *self.around_experts(block), *experts, *besides]


def _place(block: str) -> int:
    """The number of a block."""
    return int(block.rpartition(".")[2])


def _scaled(norm: Layer) -> Layer:
    """A normalisation without a shift."""
    (channels,) = norm.tensors[0][1]
    return dataclasses.replace(norm, parameters=channels, tensors=norm.tensors[:1])
