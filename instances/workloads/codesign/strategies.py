"""What each parallelization strategy of a layer costs: operations, memory and bytes, from shapes alone.

With n servers of m GPUs each, N samples an iteration, P parameters (four bytes each, as all numbers, unless a precision
says otherwise), F operations a sample forward,
and x and y numbers that a sample's forward pass reads and writes. A GPU takes the same part of its server's samples as
the others and has all parameters that the server has. ``PASSES`` counts forward and backward. Blocks are g consecutive
servers, cosets {r, r + g, …}; (p, q) is a layout of p parts of the batch times q parts of the channels.

=========== ======== ======== =========================== ================================= =========================
strategy    reads    writes   samples, and which part of  reductions, bytes in each group   memory besides parameters
                              the layer a server has
=========== ======== ======== =========================== ================================= =========================
data        (n, 1)   (n, 1)   N/n, all                    4 P over all servers              4 y N/n
data-k      (k, 1)   (k, 1)   N/k, all                    4 P over {0, n/k, …}              4 y N/k
column-g    (n, 1)   (n/g, g) N g/n, its output channels  4 x N g/n over blocks (none where 4 (x + y/g) N g/n
                                                          it reads the data set),
                                                          4 P/g over cosets
row-g       (n/g, g) (n, 1)   N g/n, its input channels   4 y N g/n over blocks,            4 y N/n
                                                          4 P/g over cosets
sliced-g    (n/g, g) (n/g, g) N g/n, its channels         none                              4 y N/n
expert-g    (n, 1)   (n, 1)   N/n, 1/g of the experts     4 P/g over cosets; 16 z/g N/n     4 y N/n
                                                          between any two of a block
=========== ======== ======== =========================== ================================= =========================

Forward, *column-g* gathers the block's input, backward it scatters the sum of that input's gradients: together one
all-reduce; the gathered input is kept. *row-g* scatters the sum of partial outputs and gathers their gradient. What
comes after a cut by rows (a normalisation, a pooling) runs on whole channels of the server's own N/n samples, and its
gradient is reduced over all servers. *sliced-g* is for what acts on every channel by itself. *expert-g* is for
feed-forward layers of which a token visits some, all equally often: z numbers of a sample go to experts and as many
come back, forward and backward; the router is on every server.

Every server of a cut layer does F N/n operations; what differs is the memory traffic: parts of parameters, and inputs
(column-g) or partial outputs (row-g) of a block's samples instead of its own. A cut into g parts is offered where the
largest part has at most a tenth more channels than the mean; costs are those of equal parts.

Embedding tables of R rows of d numbers, of which a sample looks up b, on server k mod n for the k-th:

=========== ================= ======================================= ======================== ======================
strategy    writes            bytes moved forward                     reductions               rows held
=========== ================= ======================================= ======================== ======================
owner       (1, 1)            4 (b + 1) d N                           none                     R
whole-s     (1, 1) on s       the same                                none                     R
columns-g   (1, g)            the same / g                            none                     R, of d/g numbers
rows        (n, 1)            4 (b/n + 1) d N                         4 d N over all           R/n
replicated  (n, 1)            4 (b + 1) d N/n, and 4 m R d once       4 R d over all           R on every GPU
=========== ================= ======================================= ======================== ======================

``columns-g`` is on the owner's block. Pooled vectors go to who reads them as any activation does. ``rows``
scatters sums of pooled vectors forward and gathers their gradients. All but ``replicated`` have gradients only for the
rows looked up; a server has one copy of a table, whose columns its GPUs share. Adding rows up is bound by memory, its
operations are not counted.

**What saves memory.** In c micro-batches a server keeps activations of 1/c of its samples, and reads its weights c
times. Blocks that are *recomputed* keep what they hand on alone, run forward twice (four passes in place of three),
and send what a cut sends forward twice; the one block that is there at a time is not counted. *Sharded* state is
shared out over all accelerators that have the same parameters, those of a server included: the optimizer's alone,
that with gradients, or all. Of w bytes a weight and g a gradient, replicas then reduce and gather (w + g)/2 in place
of g, and where weights are sharded, too, c (w + g/2).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ddlopt.instances.workloads.codesign.graphs import Graph, Piece
from ddlopt.instances.workloads.networks.layers import BYTES_PER_NUMBER, EmbeddingTable, Layer
from ddlopt.instances.workloads.precision import FP32, Precision
from ddlopt.instances.workloads.training import PASSES

Owners = Literal["round_robin", "all"]
Sharded = Literal["none", "optimizer", "gradients", "parameters"]
Groups = tuple[tuple[int, ...], ...]
GRADIENTS = "gradients"
"""Beside the fields of a piece's strategy: how many of its reductions, the last ones, are of gradients."""
Fields = dict[str, Any]
"""Fields of a strategy, a layer or an instance."""
# A tenth: an assumption.
_UNEVEN = 1.1


@dataclass(frozen=True)
class Setting:
    """What strategies depend on besides the layer.

    Parameters
    ----------
    servers, gpus_per_server, samples : int
        ``samples`` of all servers in one iteration.
    groups : tuple of int
        g: divisors of ``servers`` above 1.
    subsets : tuple of int
        k: divisors of ``servers`` below it.
    state_bytes_per_parameter : float
        Weight, gradient and optimizer state of a parameter that every iteration changes.
    owners : {"round_robin", "all"}
        Whether a table may be whole on one server only, or on any.
    precision : Precision
        Of pieces; tables are in single precision.
    micro_batches : int
    recompute : bool
    sharded : {"none", "optimizer", "gradients", "parameters"}
        Each with all before it.
    """

    servers: int
    gpus_per_server: int
    samples: int
    groups: tuple[int, ...]
    subsets: tuple[int, ...]
    state_bytes_per_parameter: float
    owners: Owners = "round_robin"
    precision: Precision = FP32
    micro_batches: int = 1
    recompute: bool = False
    sharded: Sharded = "none"

    def parameter_bytes(self, replicas: int) -> float:
        """Memory of a server for a parameter that a number of servers has."""
        weight = self.precision.number_bytes
        gradient = min(self.precision.gradient_bytes, self.state_bytes_per_parameter - weight)
        optimizer = self.state_bytes_per_parameter - weight - gradient
        copies = self.gpus_per_server * replicas
        parts = {"none": 3, "optimizer": 2, "gradients": 1, "parameters": 0}[self.sharded]
        whole = (weight, gradient, optimizer)[:parts]
        shared = (weight, gradient, optimizer)[parts:]
        return self.gpus_per_server * (sum(whole) + sum(shared) / copies)

    @property
    def reduced_bytes(self) -> float:
        """What replicas all-reduce of a parameter, or the all-reduce that sends as much."""
        weight, gradient = self.precision.number_bytes, self.precision.gradient_bytes
        if self.sharded == "parameters":
            return self.micro_batches * (weight + gradient / 2)
        return gradient if self.sharded == "none" else (weight + gradient) / 2


class Menus:
    """The strategies of all layers of a graph, with the layouts and group sets that they name.

    Attributes
    ----------
    layouts, group_sets
        As an instance lists them.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._layouts: dict[tuple[int, int, tuple[int, ...]], int] = {}
        self._group_sets: dict[tuple[tuple[int, ...], ...], int] = {}
        self._all = tuple(range(setting.servers))

    @property
    def layouts(self) -> list[Fields]:
        """Fields of the layouts named so far."""
        return [{"batch_parts": p, "channel_parts": q, "servers": servers} for p, q, servers in self._layouts]

    @property
    def group_sets(self) -> list[tuple[tuple[int, ...], ...]]:
        """The group sets named so far."""
        return list(self._group_sets)

    def layers(self, graph: Graph) -> list[Fields]:
        """Tables, then pieces, with their strategies."""
        found: list[Fields] = [
            {
                "name": table.name,
                "output_bytes": self.setting.samples * table.pooled_bytes,
                "strategies": list(self.table(place, table)),
            }
            for place, table in enumerate(graph.tables)
        ]
        return found + [
            {
                "name": piece.name,
                "output_bytes": self.setting.samples * self.setting.precision.number_bytes * piece.outputs,
                "convolution": piece.convolution,
                "strategies": list(self.piece(piece)),
            }
            for piece in graph.pieces
        ]

    def piece(self, piece: Piece) -> Iterable[Fields]:
        """Strategies of a piece: data parallel, then cut by columns, by rows or along the channels."""
        setting = self.setting
        for k in (setting.servers, *(() if piece.everywhere else setting.subsets)):
            yield self._data(piece, k)
        for g in setting.groups:
            if even(piece.columns, g):
                yield self._column(piece, g) if piece.split else self._sliced(piece, g)
        for g in setting.groups:
            if piece.split and even(piece.rows, g):
                yield self._row(piece, g)
        for g in setting.groups:
            if piece.experts and piece.experts % g == 0:
                yield self._expert(piece, g)

    def _data(self, piece: Piece, k: int) -> Fields:
        n, layers = self.setting.servers, (*piece.split, *piece.after)
        servers = self._all[:: n // k]
        samples = self.setting.samples / k
        layout = self._layout(k, 1, servers)
        return self._strategy(
            "data" if k == n else f"data-{k}",
            layout if piece.reads else None,
            layout,
            piece,
            flops=samples * _flops(layers),
            moved=samples * (_inputs(layers) + _outputs(layers)),
            kept=samples * _stored(piece),
            weights=[((servers,), _parameters(layers))],
        )

    def _column(self, piece: Piece, g: int) -> Fields:
        n, layers = self.setting.servers, (*piece.split, *piece.after)
        samples = self.setting.samples * g / n
        parameters = _parameters(layers) / g
        cut = (_outputs(layers) + _inputs(piece.after)) / g
        return self._strategy(
            f"column-{g}",
            self._layout(n, 1, self._all) if piece.reads else None,
            self._layout(n // g, g, self._all),
            piece,
            flops=samples * _flops(layers) / g,
            moved=samples * (_inputs(piece.split) + cut),
            kept=samples * (piece.inputs + _stored(piece) / g),
            exchanged=[(self._blocks(g), samples * piece.inputs if piece.reads else 0)],
            weights=[(self._cosets(g), parameters)],
        )

    def _row(self, piece: Piece, g: int) -> Fields:
        n, layers = self.setting.servers, (*piece.split, *piece.after)
        own = self.setting.samples / n
        samples = own * g
        parameters = _parameters(piece.split) / g
        return self._strategy(
            f"row-{g}",
            self._layout(n // g, g, self._all) if piece.reads else None,
            self._layout(n, 1, self._all),
            piece,
            flops=own * _flops(layers),
            moved=samples * (_inputs(piece.split) / g + _outputs(piece.split))
            + own * (_inputs(piece.after) + _outputs(piece.after)),
            kept=own * _stored(piece),
            exchanged=[(self._blocks(g), samples * piece.partials)],
            weights=[(self._cosets(g), parameters), ((self._all,), _parameters(piece.after))],
        )

    def _sliced(self, piece: Piece, g: int) -> Fields:
        n, own = self.setting.servers, self.setting.samples / self.setting.servers
        layout = self._layout(n // g, g, self._all)
        parameters = _parameters(piece.after) / g
        return self._strategy(
            f"sliced-{g}",
            layout,
            layout,
            piece,
            flops=own * _flops(piece.after),
            moved=own * (_inputs(piece.after) + _outputs(piece.after)),
            kept=own * _stored(piece),
            weights=[(self._cosets(g), parameters)],
        )

    def _expert(self, piece: Piece, g: int) -> Fields:
        n, own = self.setting.servers, self.setting.samples / self.setting.servers
        layers, parameters = (*piece.split, *piece.after), _parameters(piece.split) / g
        layout = self._layout(n, 1, self._all)
        # To the experts of another server and back, in every pass forward; the same of gradients, backward.
        times = 2 * self._passes(piece) - 2
        pair_bytes = times * self.setting.precision.number_bytes * own * piece.sent / g
        pairs = [(s, t, pair_bytes) for block in self._blocks(g) for s in block for t in block if s != t]
        return self._strategy(
            f"expert-{g}",
            layout,
            layout,
            piece,
            flops=own * _flops(layers),
            moved=own * (_inputs(layers) + _outputs(layers)),
            kept=own * _stored(piece),
            weights=[(self._cosets(g), parameters), ((self._all,), _parameters(piece.after))],
        ) | {"traffic": pairs}

    def table(self, place: int, table: EmbeddingTable) -> Iterable[Fields]:
        """Strategies of the ``place``-th table."""
        setting, numbers = self.setting, table.parameters
        n, pooled = setting.servers, setting.samples * table.dimension
        touched = min(setting.samples * table.bag, table.rows) * table.dimension
        lookups, owner = (table.bag + 1) * pooled, place % n
        homes: list[tuple[str, tuple[int, ...]]] = []
        if setting.owners == "all":
            homes += [(f"whole-{server}", (server,)) for server in range(n)]
            homes += [(f"columns-{g}", self._all) for g in setting.groups if g == n]
        else:
            homes.append(("owner", (owner,)))
            blocks = {g: owner - owner % g for g in setting.groups}
            homes += [(f"columns-{g}", tuple(range(first, first + g))) for g, first in blocks.items()]
        for name, servers in homes:
            g = len(servers)
            if even(table.dimension, g):
                yield self._lookup(name, self._layout(1, g, servers), lookups / g, numbers / g, touched / g, pooled / g)
        spread = self._layout(n, 1, self._all)
        moved = (table.bag / n + 1) * pooled
        yield self._lookup("rows", spread, moved, numbers / n, touched / n, pooled / n) | {
            "reductions": self._reductions([((self._all,), BYTES_PER_NUMBER * pooled)])
        }
        yield {
            "name": "replicated",
            "writes": spread,
            "moved_bytes": BYTES_PER_NUMBER * (PASSES * lookups / n + setting.gpus_per_server * numbers),
            "memory_bytes": setting.gpus_per_server * numbers * setting.state_bytes_per_parameter
            + BYTES_PER_NUMBER * pooled / n,
            "reductions": self._reductions([((self._all,), BYTES_PER_NUMBER * numbers)]),
        }

    def _lookup(self, name: str, layout: int, moved: float, held: float, touched: float, pooled: float) -> Fields:
        """A table whose gradient is of the rows looked up; counts are numbers on each server."""
        return {
            "name": name,
            "writes": layout,
            "moved_bytes": PASSES * BYTES_PER_NUMBER * moved,
            "memory_bytes": held * (self.setting.state_bytes_per_parameter - BYTES_PER_NUMBER)
            + BYTES_PER_NUMBER * (touched + pooled),
        }

    def _passes(self, piece: Piece) -> int:
        return PASSES + (1 if self.setting.recompute and piece.inside else 0)

    def _strategy(
        self,
        name: str,
        reads: int | None,
        writes: int,
        piece: Piece,
        flops: float,
        moved: float,
        kept: float,
        weights: Sequence[tuple[Groups, float]],
        exchanged: Sequence[tuple[Groups, float]] = (),
    ) -> Fields:
        """Counts of one server, forward: operations, then numbers.

        ``weights`` are parameters with the replicas of each, ``exchanged`` what is reduced of activations, forward and
        backward together.
        """
        setting, passes = self.setting, self._passes(piece)
        number_bytes = setting.precision.number_bytes
        parameters = sum(count for _, count in weights)
        read = setting.micro_batches * setting.gpus_per_server * parameters
        held_bytes = sum(count * setting.parameter_bytes(len(groups[0])) for groups, count in weights)
        kept_bytes = 0.0 if passes > PASSES else number_bytes * kept / setting.micro_batches
        again = (passes - 1) / (PASSES - 1)
        activations = self._reductions([(groups, number_bytes * again * count) for groups, count in exchanged])
        gradients = self._reductions([(groups, setting.reduced_bytes * count) for groups, count in weights])
        return {
            "name": name,
            "reads": reads,
            "writes": writes,
            "flops": passes * flops,
            "moved_bytes": passes * number_bytes * (read + moved),
            "memory_bytes": held_bytes + kept_bytes,
            "reductions": activations + gradients,
            GRADIENTS: len(gradients),
        }

    def _reductions(self, sizes: Sequence[tuple[Groups, float]]) -> list[Fields]:
        """Of a number of bytes in each group."""
        return [
            {"groups": self._group_sets.setdefault(groups, len(self._group_sets)), "bytes": size}
            for groups, size in sizes
            if size and len(groups[0]) > 1
        ]

    def _layout(self, batch_parts: int, channel_parts: int, servers: tuple[int, ...]) -> int:
        return self._layouts.setdefault((batch_parts, channel_parts, servers), len(self._layouts))

    def _blocks(self, g: int) -> tuple[tuple[int, ...], ...]:
        return tuple(self._all[first : first + g] for first in range(0, len(self._all), g))

    def _cosets(self, g: int) -> tuple[tuple[int, ...], ...]:
        return tuple(self._all[rest::g] for rest in range(g))


def even(channels: int, parts: int) -> bool:
    """Whether the largest of a number of parts has at most a tenth more channels than the mean."""
    return math.ceil(channels / parts) * parts <= _UNEVEN * channels


def _stored(piece: Piece) -> int:
    """Numbers of a sample that the backward pass needs."""
    return _outputs((*piece.split, *piece.after)) or piece.outputs


def _flops(layers: Iterable[Layer]) -> int:
    return sum(layer.flops for layer in layers)


def _parameters(layers: Iterable[Layer]) -> int:
    return sum(layer.parameters for layer in layers)


def _inputs(layers: Iterable[Layer]) -> int:
    return sum(layer.inputs for layer in layers)


def _outputs(layers: Iterable[Layer]) -> int:
    return sum(layer.outputs for layer in layers)
