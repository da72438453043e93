"""Transformers as graphs of pieces: attention cut by heads of keys and values, feed-forward layers by width or experts.

Where the table of words is also the last layer, it is whole on every server, and the last layer may be cut.
"""

import dataclasses

from ddlopt.instances.workloads.codesign.graphs import Graph, Piece
from ddlopt.instances.workloads.networks.layers import Layer
from ddlopt.instances.workloads.networks.transformers import Transformer


def transformer_graph(sizes: Transformer) -> Graph:
    """The pieces of a transformer, each after those that it reads."""
    growing = _Growing(sizes)
    growing.all()
    return Graph(tuple(growing.pieces), ())


class _Growing:
    def __init__(self, sizes: Transformer) -> None:
        self.sizes = sizes
        self.numbers = sizes.sequence * sizes.hidden
        self.pieces: list[Piece] = []

    def all(self) -> None:
        sizes = self.sizes
        last = self._embedding()
        for block in sizes.blocks():
            first = len(self.pieces)
            last = self._block(block, last)
            self.pieces[first:-1] = [dataclasses.replace(piece, inside=True) for piece in self.pieces[first:-1]]
        last = self._norm("norm", last) if sizes.norm_first else last
        if sizes.head_layer == "pooler":
            self.pieces[-1] = dataclasses.replace(self.pieces[-1], outputs=sizes.hidden)
            last = self._weighted("pooler", (last,), sizes.pooler())
        elif sizes.head_layer != "none":
            last = self._words(last)
        if sizes.labels:
            self._weighted("classes", (last,), sizes.classes())

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
        sizes, numbers = self.sizes, self.numbers
        after = () if sizes.norm_first and not sizes.embedding_norm else (sizes.norm("embedding.norm"),)
        tied = sizes.tied
        rows = 1 if tied else sizes.vocabulary
        tables = tuple(sizes.tables.values())
        self.pieces.append(Piece("embedding", (), tables, after, numbers, numbers, numbers, 1, rows, everywhere=tied))
        return "embedding"

    def _block(self, block: str, last: str) -> str:
        sizes = self.sizes
        first = self._norm(f"{block}.norm.0", last) if sizes.norm_first else last
        if sizes.parallel:
            second = first if sizes.parallel == 1 else self._norm(f"{block}.norm.1", last)
            name = f"{block}.add"
            reads = (self._attention(block, first), self._fed(block, second), last)
            return self._add(name, reads, (), (), self.numbers, 0, self.numbers, sizes.hidden, 1)
        last = self._sum(block, 0, self._behind(block, 2, self._attention(block, first)), last)
        second = self._norm(f"{block}.norm.1", last) if sizes.norm_first else last
        return self._sum(block, 1, self._behind(block, 3, self._fed(block, second)), last)

    def _behind(self, block: str, place: int, inner: str) -> str:
        return self._norm(f"{block}.norm.{place}", inner) if self.sizes.norms_behind else inner

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
        self._add(name, reads, heads, after, inputs, partials, products.outputs, max(1, sizes.key_value_heads), rows)
        return self._weighted(f"{block}.attention.output", (name,), sizes.output(block))

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
        after = (sizes.router(block), *sizes.shared_gates(block))
        piece = Piece(
            f"{block}.experts", (source,), layers, after, self.numbers, 0, self.numbers, 1, 1,
            experts=sizes.experts, sent=sizes.chosen * self.numbers,
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
