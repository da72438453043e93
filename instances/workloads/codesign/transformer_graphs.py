"""Transformers as graphs of pieces: attention cut by heads of keys and values, feed-forward layers by width or experts.

Where the table of words is also the last layer, it is whole on every server, and the last layer may be cut.
"""

import dataclasses

from ddlopt.instances.workloads.codesign.graphs import Graph, Piece
from ddlopt.instances.workloads.networks.layers import Layer
from ddlopt.instances.workloads.networks.transformer_parts import Part
from ddlopt.instances.workloads.networks.transformers import Transformer


def transformer_graph(sizes: Transformer) -> Graph:
    """The pieces of a transformer, each after those that it reads."""
    growing = _Growing(sizes)
    growing.all()
    return Graph(tuple(growing.pieces), ())


class _Growing:
    def __init__(self, sizes: Transformer, pieces: list[Piece] | None = None) -> None:
        self.sizes = sizes
        self.numbers = sizes.sequence * sizes.hidden
        self.pieces: list[Piece] = [] if pieces is None else pieces
        self.memory = ""
        """The piece that gives the encoder's result."""

    def all(self) -> None:
        sizes = self.sizes
        if sizes.encoder is not None:
            self.memory = _Growing(sizes.encoder, self.pieces).stack()
        last = self.stack()
        if sizes.head_layer in ("pooler", "first"):
            self.pieces[-1] = dataclasses.replace(self.pieces[-1], outputs=sizes.hidden)
        if sizes.head_layer == "pooler":
            last = self._weighted("pooler", (last,), sizes.pooler())
        elif sizes.head_layer not in ("first", "none"):
            last = self._words(last)
        if sizes.labels:
            self._weighted("classes", (last,), sizes.classes())

    def stack(self) -> str:
        """The pieces up to the last normalisation; returns that."""
        sizes = self.sizes
        last = self._embedding()
        for block in sizes.blocks():
            first = len(self.pieces)
            last = self._block(block, last)
            self.pieces[first:-1] = [dataclasses.replace(piece, inside=True) for piece in self.pieces[first:-1]]
        return self._norm(f"{sizes.prefix}norm", last) if sizes.norm_first else last

    def _words(self, last: str) -> str:
        sizes = self.sizes
        if sizes.head_layer == "masked":
            last = self._norm("transform.norm", self._weighted("transform", (last,), sizes.transform()))
        layer = sizes.words()
        rows = 1 if sizes.tied else sizes.hidden
        return self._add(
            "words", (last,), (layer,), (), layer.inputs, layer.outputs, layer.outputs, sizes.vocabulary, rows
        )

    def _embedding(self) -> str:
        sizes, numbers, name = self.sizes, self.numbers, f"{self.sizes.prefix}embedding"
        after = () if sizes.norm_first and not sizes.embedding_norm else (sizes.norm(f"{name}.norm"),)
        everywhere = self.everywhere
        rows = 1 if everywhere or sizes.stem else sizes.vocabulary
        tables = (*sizes.stem, *sizes.tables.values())
        inputs = sizes.stem[0].inputs if sizes.stem else numbers
        self.pieces.append(Piece(name, (), tables, after, inputs, numbers, numbers, 1, rows, everywhere=everywhere))
        return name

    @property
    def everywhere(self) -> bool:
        """Whether others use this table of words: the last layer, or a decoder."""
        sizes = self.sizes
        return bool(sizes.vocabulary) and (sizes.tied or sizes.shares_words or bool(sizes.prefix))

    def _block(self, block: str, last: str) -> str:
        sizes, parts = self.sizes, self.sizes.parts(block)
        if sizes.parallel:
            first = self._norm(f"{block}.norm.0", last)
            second = first if sizes.parallel == 1 else self._norm(f"{block}.norm.1", last)
            reads = (*(self._part(block, part, each) for part, each in zip(parts, (first, second), strict=True)), last)
            return self._add(f"{block}.add", reads, (), (), self.numbers, 0, self.numbers, sizes.hidden, 1)
        for place, part in enumerate(parts):
            first = self._norm(f"{block}.norm.{place}", last) if sizes.norm_first else last
            inner = self._behind(block, place + 2, self._part(block, part, first))
            last = self._sum(block, place, inner, last)
        return last

    def _part(self, block: str, part: Part, source: str) -> str:
        match part:
            case "attention":
                return self._attention(block, source)
            case "cross":
                return self._cross(block, source)
            case "mixer":
                return self._mixer(block, source)
            case "feed":
                return self._fed(block, source)

    def _behind(self, block: str, place: int, inner: str) -> str:
        return self._norm(f"{block}.norm.{place}", inner) if self.sizes.norms_behind else inner

    def _mixer(self, block: str, source: str) -> str:
        """Cut into the parts that do not read each other."""
        into, scan, out = self.sizes.mixing(block)
        name, partials = f"{block}.mixer.heads", sum(layer.outputs for layer in into)
        cuts = self.sizes.mixer.cuts if self.sizes.mixer is not None else 1
        self._add(name, (source,), into, (scan,), self.numbers, partials, scan.outputs, cuts, self.sizes.hidden)
        return self._weighted(out.name, (name,), out)

    def _cross(self, block: str, source: str) -> str:
        sizes, name = self.sizes, f"{block}.cross.heads"
        heads, products = tuple(sizes.projections(block, "cross").values()), sizes.products(block, "cross")
        partials = sum(layer.outputs for layer in heads)
        inputs = self.numbers + sizes.seen("cross") * sizes.hidden
        reads, keys = (source, self.memory), sizes.heads_of(block).keys
        self._add(name, reads, heads, (products,), inputs, partials, products.outputs, keys, sizes.hidden)
        return self._weighted(f"{block}.cross.output", (name,), sizes.output(block, "cross"))

    def _attention(self, block: str, source: str) -> str:
        sizes = self.sizes
        heads, products = tuple(sizes.projections(block).values()), sizes.products(block)
        after = (*sizes.head_norms_of(block).values(), products)
        partials = sum(layer.outputs for layer in heads)
        name, inputs, rows = f"{block}.attention.heads", self.numbers, sizes.hidden
        reads: tuple[str, ...] = (source,)
        if short := tuple(sizes.latents(block).values()):
            latent = self._latent(block, source, tuple(down for down, _ in short), tuple(norm for _, norm in short))
            reads = (latent,) if len(short) == len(heads) else (source, latent)
            inputs, rows = sum(layer.inputs for layer in heads), 1
        if sizes.indexer is not None:
            reads = (*reads, self._index(block, reads))
        columns = max(1, sizes.heads_of(block).keys)
        self._add(name, reads, heads, after, inputs, partials, products.outputs, columns, rows)
        return self._weighted(f"{block}.attention.output", (name,), sizes.output(block))

    def _index(self, block: str, reads: tuple[str, ...]) -> str:
        """What chooses the tokens that queries see, whole on every server of a cut."""
        layers = self.sizes.index(block)
        split = tuple(layers[each] for each in ("query", "key", "weights"))
        after, name = (layers["norm"], layers["products"]), f"{block}.attention.index"
        inputs, partials = sum(layer.inputs for layer in split), sum(layer.outputs for layer in split)
        return self._add(name, reads, split, after, inputs, partials, after[-1].outputs, 1, 1)

    def _latent(self, block: str, source: str, down: tuple[Layer, ...], norms: tuple[Layer, ...]) -> str:
        """The short vectors of attention, which every server of a cut has whole."""
        made = sum(layer.outputs for layer in down)
        name = f"{block}.attention.latent"
        return self._add(name, (source,), down, norms, self.numbers, made, made, 1, self.sizes.hidden)

    def _fed(self, block: str, source: str) -> str:
        sizes = self.sizes
        if not sizes.has_experts(block):
            return self._feed(f"{block}.feed", source, *sizes.feed(f"{block}.feed", sizes.sequence))
        experts, shared = self._experts(block, source), sizes.shared(block)
        if shared is None:
            return experts
        reads = (experts, self._feed(f"{block}.shared", source, *shared))
        return self._add(f"{block}.experts.add", reads, (), (), self.numbers, 0, self.numbers, sizes.hidden, 1)

    def _feed(self, prefix: str, source: str, wide: tuple[Layer, ...], narrow: Layer) -> str:
        sizes = self.sizes
        if len(wide) == 1:
            return self._weighted(narrow.name, (self._weighted(wide[0].name, (source,), wide[0]),), narrow)
        partials, name = sum(layer.outputs for layer in wide), f"{prefix}.wide"
        width = dict(wide[0].tensors)["weight"][0]
        self._add(name, (source,), wide, (), self.numbers, partials, wide[0].outputs, width, sizes.hidden)
        return self._weighted(narrow.name, (name,), narrow)

    def _experts(self, block: str, source: str) -> str:
        """All experts of a block with their router: each on all servers, or on one of every group."""
        sizes = self.sizes
        layers = tuple(each for wide, narrow in sizes.experts_of(block) for each in (*wide, narrow))
        around = sizes.around_experts(block)
        after = (sizes.router(block), *around, *sizes.shared_gates(block))
        width = sizes.latent_experts or sizes.hidden
        piece = Piece(
            f"{block}.experts", (source,), layers, after, self.numbers, 0, self.numbers, 1, 1,
            experts=sizes.experts, sent=sizes.chosen * sizes.sequence * width,
        )  # fmt: skip
        self.pieces.append(piece)
        return piece.name

    def _sum(self, block: str, place: int, inner: str, last: str) -> str:
        """The residual connection; where normalisation follows it, that is part of it and needs whole vectors."""
        sizes, name = self.sizes, f"{block}.{'add' if self.sizes.norm_first else 'norm'}.{place}"
        after = () if sizes.norm_first else (sizes.norm(name),)
        columns = sizes.hidden if sizes.norm_first else 1
        return self._add(name, (inner, last), (), after, self.numbers, 0, self.numbers, columns, 1)

    def _norm(self, name: str, source: str) -> str:
        return self._add(name, (source,), (), (self.sizes.norm(name),), self.numbers, 0, self.numbers, 1, 1)

    def _weighted(self, name: str, reads: tuple[str, ...], layer: Layer) -> str:
        columns, rows = dict(layer.tensors)["weight"]
        return self._add(name, reads, (layer,), (), layer.inputs, layer.outputs, layer.outputs, columns, rows)

    def _add(
        self,
        name: str,
        reads: tuple[str, ...],
        split: tuple[Layer, ...],
        after: tuple[Layer, ...],
        inputs: int,
        partials: int,
        outputs: int,
        columns: int,
        rows: int,
    ) -> str:
        self.pieces.append(Piece(name, reads, split, after, inputs, partials, outputs, columns, rows))
        return name
