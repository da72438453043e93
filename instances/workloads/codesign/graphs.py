"""Networks as graphs of pieces, each of which runs under one parallelization strategy.

A piece is a layer with parameters and what follows it without looking at other pieces: batch normalisation, pooling,
products of attention. Counts are those of the workload's layers. Additions of residual connections are pieces of their
own, as several others read what they give; neither they nor activation functions cost operations, as in
:mod:`ddlopt.instances.workloads.training`. A concatenation is no piece: who reads it reads all of its parts.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from ddlopt.instances.workloads.networks.layers import EmbeddingTable, Layer
from ddlopt.instances.workloads.training import Workload

HEAD = 64
"""Channels of a head of attention, in BERT and its kin."""


@dataclass(frozen=True)
class Piece:
    """Layers that run one after another under one strategy; counts are numbers of *one sample*.

    Parameters
    ----------
    name : str
    reads : tuple of str
        Pieces and tables; none where it reads the data set.
    split : tuple of Layer
        Layers whose weights may be cut by columns (output channels) or rows (input channels); they read the same.
    after : tuple of Layer
        What follows them: acts on every channel by itself unless ``columns`` is 1.
    inputs, partials, outputs : int
        What it reads, counted once; what a cut by rows has to sum up; what it hands on.
    columns, rows : int
        Output and input channels: a cut has at most as many parts. 1 where there is no such cut. Pieces without
        ``split`` are cut along the channels, which are the same before and after: ``columns``.
    everywhere : bool
        Whether every server must have it, as others use its weights.
    experts : int
        Feed-forward layers in ``split`` of which a token is sent to some; 0 where there are none.
    sent : int
        Numbers of a sample that go to the experts, counted once for each that a token is sent to.
    inside : bool
        Whether what it hands on is inside of a block, and not kept where blocks are recomputed.
    """

    name: str
    reads: tuple[str, ...]
    split: tuple[Layer, ...]
    after: tuple[Layer, ...]
    inputs: int
    partials: int
    outputs: int
    columns: int
    rows: int
    everywhere: bool = False
    experts: int = 0
    sent: int = 0
    inside: bool = False

    @property
    def convolution(self) -> bool:
        """Which rate of the accelerator counts."""
        return any(layer.convolution for layer in self.split)


@dataclass(frozen=True)
class Graph:
    """The pieces of a network, each after those that it reads, and its embedding tables."""

    pieces: tuple[Piece, ...]
    tables: tuple[EmbeddingTable, ...]


def graph_of(workload: Workload) -> Graph:
    """The graph of one of TopoOpt's networks, whatever its sizes: that which ``workload.name`` says."""
    wiring = _Wiring(workload)
    _WIRINGS[workload.name](wiring)
    used = [layer.name for piece in wiring.pieces for layer in (*piece.split, *piece.after)]
    assert sorted(used) == sorted(wiring.layers), "every layer of the workload is in one piece"
    return Graph(tuple(wiring.pieces), workload.tables)


class _Wiring:
    """Pieces by the names of a workload's layers."""

    def __init__(self, workload: Workload) -> None:
        self.layers = {layer.name: layer for layer in workload.layers}
        self.tables = tuple(table.name for table in workload.tables)
        self.pieces: list[Piece] = []

    def weighted(self, name: str, reads: tuple[str, ...], layer: str, *after: str) -> str:
        """A dense layer or a convolution, and what follows."""
        own, rest = self.layers[layer], tuple(self.layers[each] for each in after)
        columns, rows, *_ = dict(own.tensors)["weight"]
        outputs = (own, *rest)[-1].outputs
        return self.add(Piece(name, reads, (own,), rest, own.inputs, own.outputs, outputs, columns, rows))

    def chain(self, names: list[str], first: tuple[str, ...]) -> str:
        """Dense layers, each a piece that reads the one before."""
        for name in names:
            first = (self.weighted(name, first, name),)
        return first[0]

    def addition(self, name: str, reads: tuple[str, str], outputs: int, columns: int, *after: Layer) -> str:
        """The sum of two pieces' outputs, and what follows; with ``columns`` = 1 it is not cut."""
        handed_on = after[-1].outputs if after else outputs
        return self.add(Piece(name, reads, (), after, outputs, 0, handed_on, columns, 1))

    def add(self, piece: Piece) -> str:
        self.pieces.append(piece)
        return piece.name

    def named(self, prefix: str) -> list[str]:
        return [name for name in self.layers if name.startswith(prefix)]


def _dlrm(wiring: _Wiring) -> None:
    bottom = wiring.chain(wiring.named("bottom."), ())
    wiring.chain(wiring.named("top."), (bottom, *wiring.tables))


def _ncf(wiring: _Wiring) -> None:
    product = wiring.layers["product"]
    factors = tuple(name for name in wiring.tables if ".factor." in name)
    reads, outputs = factors, product.outputs
    wiring.add(Piece("product", reads, (), (product,), product.inputs, 0, outputs, outputs, 1))
    mlp = wiring.chain(wiring.named("mlp."), tuple(name for name in wiring.tables if ".mlp." in name))
    wiring.chain(["predict"], ("product", mlp))


def _candle(wiring: _Wiring) -> None:
    dense = wiring.named("dense.")
    kinds = dict.fromkeys(name.rsplit(".", 1)[0] for name in wiring.layers if name not in dense)
    wiring.chain(dense, tuple(wiring.chain(wiring.named(f"{kind}."), ()) for kind in kinds))


def _vgg(wiring: _Wiring) -> None:
    """Poolings belong to the convolutions before them."""
    names, last = list(wiring.layers), ""
    for place, name in enumerate(names):
        if wiring.layers[name].parameters:
            pools = [each for each in names[place + 1 : place + 2] if not wiring.layers[each].parameters]
            last = wiring.weighted(name, (last,) if last else (), name, *pools)


def _resnet(wiring: _Wiring) -> None:
    last = wiring.weighted("stem", (), "stem.conv", "stem.norm", "stem.pool")
    blocks = list(dict.fromkeys(name.rsplit(".", 2)[0] for name in wiring.named("stage.")))
    for block in blocks:
        inner, shortcut = last, last
        for part in [f"{block}.{each}" for each in (0, 1, 2)]:
            inner = wiring.weighted(part, (inner,), f"{part}.conv", f"{part}.norm")
        outputs, channels = wiring.layers[f"{block}.2.norm"].outputs, wiring.layers[f"{block}.2.norm"].parameters // 2
        if f"{block}.shortcut.conv" in wiring.layers:
            part = f"{block}.shortcut"
            shortcut = wiring.weighted(part, (last,), f"{part}.conv", f"{part}.norm")
        pool = (wiring.layers["pool"],) if block == blocks[-1] else ()
        last = wiring.addition(f"{block}.add", (inner, shortcut), outputs, channels, *pool)
    wiring.weighted("classes", (last,), "classes")


def _bert(wiring: _Wiring) -> None:
    """Query, key, value and the products are cut by heads; the last block hands on the first position only."""
    layers = wiring.layers
    norm, tables = (
        layers["embedding.norm"],
        [layers[f"embedding.{each}"] for each in ("words", "positions", "segments")],
    )
    numbers, rows = norm.outputs, dict(tables[0].tensors)["weight"][0]
    wiring.add(Piece("embedding", (), tuple(tables), (norm,), numbers, numbers, numbers, 1, rows))
    last, hidden = "embedding", layers["pooler"].inputs
    blocks = list(dict.fromkeys(name.split(".")[1] for name in wiring.named("block.")))
    for block in [f"block.{each}" for each in blocks]:
        place = len(wiring.pieces)
        attention = f"{block}.attention"
        heads = tuple(layers[f"{attention}.{each}"] for each in ("query", "key", "value"))
        products = (layers[f"{attention}.products"],)
        name = f"{attention}.heads"
        wiring.add(Piece(name, (last,), heads, products, numbers, 3 * numbers, numbers, max(1, hidden // HEAD), hidden))
        inner = wiring.weighted(f"{attention}.output", (name,), f"{attention}.output")
        last = wiring.addition(f"{block}.norm.0", (inner, last), numbers, 1, layers[f"{block}.norm.0"])
        inner = wiring.chain([f"{block}.feed.0", f"{block}.feed.1"], (last,))
        last = wiring.addition(f"{block}.norm.1", (inner, last), numbers, 1, layers[f"{block}.norm.1"])
        wiring.pieces[place:-1] = [dataclasses.replace(piece, inside=True) for piece in wiring.pieces[place:-1]]
    wiring.pieces[-1] = dataclasses.replace(wiring.pieces[-1], outputs=hidden)
    wiring.weighted("pooler", (last,), "pooler")


_WIRINGS: dict[str, Callable[[_Wiring], None]] = {
    "dlrm": _dlrm,
    "bert": _bert,
    "candle": _candle,
    "ncf": _ncf,
    "resnet50": _resnet,
    "vgg16": _vgg,
}
