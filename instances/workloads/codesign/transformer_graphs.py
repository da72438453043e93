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
        after = () if sizes.norm_first else (sizes.norm("embedding.norm"),)
        tied = sizes.tied
        rows = 1 if tied else sizes.vocabulary
        tables = tuple(sizes.tables.values())
        self.pieces.append(Piece("embedding", (), tables, after, numbers, numbers, numbers, 1, rows, everywhere=tied))
        return "embedding"

    def _block(self, block: str, last: str) -> str:
        first = self._norm(f"{block}.norm.0", last) if self.sizes.norm_first else last
        last = self._sum(block, 0, self._attention(block, first), last)
        second = self._norm(f"{block}.norm.1", last) if self.sizes.norm_first else last
        return self._sum(block, 1, self._fed(block, second), last)

    def _attention(self, block: str, source: str) -> str:
        sizes = self.sizes
        heads, products = tuple(sizes.projections(block).values()), sizes.products(block)
        partials = sum(layer.outputs for layer in heads)
        name = f"{block}.attention.heads"
        self._add(
            name, (source,), heads, (products,), self.numbers, partials, products.outputs,
            max(1, sizes.key_value_heads), sizes.hidden,
        )  # fmt: skip
        return self._weighted(f"{block}.attention.output", (name,), sizes.output(block))

    def _fed(self, block: str, source: str) -> str:
        sizes = self.sizes
        if sizes.experts:
            return self._experts(block, source)
        wide, narrow = sizes.feed(f"{block}.feed", sizes.sequence)
        if len(wide) == 1:
            return self._weighted(narrow.name, (self._weighted(wide[0].name, (source,), wide[0]),), narrow)
        partials, name = sum(layer.outputs for layer in wide), f"{block}.feed.wide"
        self._add(name, (source,), wide, (), self.numbers, partials, wide[0].outputs, sizes.width, sizes.hidden)
        return self._weighted(narrow.name, (name,), narrow)

    def _experts(self, block: str, source: str) -> str:
        """All experts of a block with their router: each on all servers, or on one of every group."""
        sizes = self.sizes
        layers = tuple(each for wide, narrow in sizes.experts_of(block) for each in (*wide, narrow))
        piece = Piece(
            f"{block}.experts", (source,), layers, (sizes.router(block),), self.numbers, 0, self.numbers, 1, 1,
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
