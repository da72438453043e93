r"""What compressing and sending a gradient costs: menus of options, from sizes, bandwidths and published times.

A cluster has N nodes of g GPUs. A gradient is s = 4n bytes, and what a worker sends of it P bytes
(:mod:`ddlopt.instances.workloads.compression.compressors`).

Collectives have a ring within every node and one between nodes. Where nothing is compressed they are a reduce-scatter
and an all-gather of :math:`2 (g-1)/g\, s` bytes by every GPU, and of :math:`2 (N-1)/N\, s` bytes by every node. What
is linear (fp16, random_k, powersgd) is added up while it travels: s becomes P. Of the others,

- between nodes (``inter``, ``all``) each node receives :math:`(N-1) P` bytes;
- within (``intra``, ``all``) each GPU sends :math:`(g-1)/g\, P` bytes, so that every one has all of its share, adds,
  and compresses the sum. That travels back as :math:`(g-1)/g\, P` bytes, or N times as much where it was compressed
  between nodes and comes from all of them. Being compressed twice, the part of the energy that is left is squared (of
  qsgd, which is without bias, errors e become (1 + e)² - 1).

Factors of sfb come from every GPU: :math:`(N-1) g P` bytes by a node, :math:`(Ng-1) P` by a GPU. Every step of a ring
launches a message: :math:`2 (g-1)` within and :math:`2 (N-1)` between nodes, half of the latter where they gather.
Bandwidths are nominal.

A worker encodes its n numbers, or its share n/g where only nodes compress; everything later occupies the wire. Times
are per 2^20 numbers and no less than that for fewer, as in Espresso's planner; those of powersgd and sfb are a roofline
(powersgd: both products and Gram-Schmidt, then the product of the factors; sfb: products of all workers' factors).
Compression on the CPUs of a node delays no backward pass: all of it occupies the wire.

With ``lanes`` links within nodes, CPUs, links between nodes and the GPU's stream for decoding are resources of their
own, which gradients pass in this order (:data:`LANES`), each once: what travels within nodes before and after counts at
the beginning, and so does decoding on CPUs. Encoding on GPUs delays the backward pass as before.

References
----------
Times: zhuangwang93/Espresso, byteps/torch/mergeComp/scheduler/model_tensor.py (GPU, V100: the difference of the two
figures encodes, the second decodes what all nodes sent) and byteps/compressor_microbenchmark/log (CPU). There is none
for qsgd, which is given those of sign, nor for top_k, which is given those of dgc.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ddlopt.instances.workloads.accelerators import V100, Accelerator
from ddlopt.instances.workloads.compression.compressors import Compression, Scope, matrix
from ddlopt.models.compression.timeline.instance import Cluster, Option, Stage

INTRA_BYTES_PER_S = {"nvlink": 150e9, "pcie": 12.5e9}
"""Of a GPU, per direction: NVLink 2 in all, and PCIe 3.0 x16 as Espresso's authors have it."""
LATENCY_S = 10e-6
"""Of a message: an assumption."""

LANES = ("within", "cpu", "between", "decoding")
"""Resources beside the backward pass, in the order in which gradients pass them."""

# The size that times are given for.
_MEGA = 2**20
GPU_S = {
    "none": (0.0, 0.0),
    "fp16": (4e-6, 22e-6),
    "random_k": (54e-6, 34e-6),
    "dgc": (356e-6, 34e-6),
    "top_k": (356e-6, 34e-6),
    "sign": (130e-6, 140e-6),
    "qsgd": (130e-6, 140e-6),
    "onebit": (450e-6, 170e-6),
}
"""Encoding and decoding of 2^20 numbers."""
_CPU = {
    "random_k": (16e-6, 27.9e9, 148.6e9),
    "dgc": (13e-6, 14.4e9, 70.6e9),
    "sign": (16e-6, 31.2e9, 94.0e9),
    "onebit": (19e-6, 30.0e9, 92.2e9),
}
"""Seconds at least, and bits of the gradient per second in encoding and in decoding, at 2^22 numbers."""
_KERNEL_S = 10e-6
"""Starting a GPU kernel; powersgd has one for each product and three for each column. An assumption."""
_EVERYWHERE = ("none", "fp16", "powersgd", "sfb")
"""What compresses nothing, or everything unless told otherwise."""


def menu(
    shape: tuple[int, ...],
    cluster: Cluster,
    compressions: Iterable[Compression],
    *,
    rows: int | None = None,
    energy: float = 1.0,
    accelerator: Accelerator = V100,
    coding_s: Mapping[str, tuple[float, float]] = GPU_S,
    lanes: bool = False,
) -> tuple[Option, ...]:
    """All that a gradient may be sent as, beginning with no compression.

    Parameters
    ----------
    shape : tuple of int
    cluster : Cluster
    compressions : iterable of Compression
        powersgd is left out where its factors are not smaller than the matrix, sfb where ``rows`` is None.
    rows : int, optional
        Of the input that a worker's batch gives to a dense layer, whose gradient a product of two factors then is.
    energy : float
        Of the gradient, by which errors are multiplied.
    accelerator : Accelerator
        On which powersgd and sfb are computed.
    coding_s : dict of str to (float, float)
        To encode and to decode 2^20 numbers; what is not in it has its published times.
    lanes : bool
        Whether options have stages on :data:`LANES`.
    """
    found: dict[str, Option] = {}
    for each in (Compression("none"), *compressions):
        for scope in _scopes(each, cluster):
            costs = _Costs(each, scope, shape, cluster, rows, accelerator, coding_s)
            usual = scope == "all" and each.compressor in _EVERYWHERE
            label = each.label(scope if _levels(cluster) and not usual else None)
            if costs.sensible:
                found.setdefault(label, costs.in_stages(label, energy) if lanes else costs.option(label, energy))
    return tuple(found.values())


def _levels(cluster: Cluster) -> bool:
    """Whether nodes differ from GPUs."""
    return cluster.nodes > 1 and cluster.gpus_per_node > 1


def _scopes(compression: Compression, cluster: Cluster) -> tuple[Scope, ...]:
    if not _levels(cluster):
        return ("all",)
    if compression.device == "cpu":
        return ("inter",)
    if compression.scope is not None:
        return (compression.scope,)
    return ("all",) if compression.compressor in _EVERYWHERE else ("inter", "all")


@dataclass(frozen=True)
class _Costs:
    """An option's figures; see the module."""

    compression: Compression
    scope: Scope
    shape: tuple[int, ...]
    cluster: Cluster
    rows: int | None
    accelerator: Accelerator
    coding_s: Mapping[str, tuple[float, float]]

    @property
    def sensible(self) -> bool:
        rows, columns = matrix(self.shape)
        if self.compression.compressor == "powersgd":
            rank = self.compression.parameter or 1
            return rank <= min(rows, columns) and rank * (rows + columns) < rows * columns
        return self.compression.compressor != "sfb" or self.rows is not None

    def option(self, label: str, energy: float) -> Option:
        return Option(
            label=label,
            scope=self.scope,
            **self.compression.fields,
            encode_s=_short(self.encode_s),
            launch_s=_short(self.launch_s),
            wire_s=_short(self.wire_s),
            decode_s=_short(self.decode_s),
            error=_short(energy * self.compression.relative_error(self.shape, 2 if self.twice else 1)),
        )

    def in_stages(self, label: str, energy: float) -> Option:
        """The same on :data:`LANES`, less those that are passed at once."""
        whole, cpu = self.option(label, energy), self.compression.device == "cpu"
        node_s, gpu_s = self.wire_parts_s
        node_steps, gpu_steps = self.steps
        figures = {
            "within": (self.cluster.latency_s * gpu_steps, gpu_s),
            "cpu": (0.0, self.decode_s if cpu else 0.0),
            "between": (self.cluster.latency_s * node_steps, node_s),
            "decoding": (0.0, 0.0 if cpu else self.decode_s),
        }
        stages = tuple(
            Stage(lane=lane, launch_s=_short(launch_s), busy_s=_short(busy_s))
            for lane, (launch_s, busy_s) in figures.items()
            if launch_s + busy_s > 0
        )
        return whole.model_copy(update={"launch_s": 0.0, "wire_s": 0.0, "decode_s": 0.0, "stages": stages})

    @property
    def within(self) -> bool:
        """Whether a GPU compresses all of its numbers, and not what nodes have added up."""
        return self.cluster.gpus_per_node > 1 and self.scope != "inter"

    @property
    def between(self) -> bool:
        return self.cluster.nodes > 1 and self.scope != "intra"

    @property
    def twice(self) -> bool:
        return self.within and not self.compression.added_up and self.compression.compressor != "sfb"

    @property
    def payload(self) -> float:
        return self.compression.payload_bytes(self.shape, self.rows or 1)

    @property
    def wire_s(self) -> float:
        return sum(self.wire_parts_s)

    @property
    def wire_parts_s(self) -> tuple[float, float]:
        """Between nodes, and within them."""
        N, g = self.cluster.nodes, self.cluster.gpus_per_node
        plain = 4.0 * math.prod(self.shape)
        if self.compression.compressor == "sfb":
            node, gpu = (N - 1) * g * self.payload, (N * g - 1) * self.payload * (g > 1)
        elif self.compression.added_up:
            node = 2 * (N - 1) / N * (self.payload if self.between else plain)
            gpu = 2 * (g - 1) / g * (self.payload if self.within else plain)
        else:
            node = (N - 1) * self.payload if self.between else 2 * (N - 1) / N * plain
            back = N if self.between else 1
            gpu = (g - 1) / g * ((1 + back) * self.payload if self.within else 2 * plain)
        return node / self.cluster.inter_bandwidth_bytes_per_s, gpu / self.cluster.intra_bandwidth_bytes_per_s

    @property
    def launch_s(self) -> float:
        return self.cluster.latency_s * sum(self.steps)

    @property
    def steps(self) -> tuple[int, int]:
        """Messages one after the other, between nodes and within them."""
        N, g = self.cluster.nodes, self.cluster.gpus_per_node
        gathers = self.between and not self.compression.added_up
        if self.compression.compressor == "sfb":
            return N - 1, g - 1
        times = 2 if self.compression.compressor == "powersgd" else 1
        return times * (1 if gathers else 2) * (N - 1), times * 2 * (g - 1)

    @property
    def encode_s(self) -> float:
        if self.compression.device == "cpu" or self.compression.compressor == "sfb":
            return 0.0
        if self.compression.compressor == "powersgd":
            rows, rank = matrix(self.shape)[0], self.compression.parameter or 1
            orthogonal_s = 2 * rows * rank**2 / self.accelerator.flops_per_s + 3 * rank * _KERNEL_S
            return 2 * (self._product_s(rank) + _KERNEL_S) + orthogonal_s
        return self._kernel_s(0, 1 if self.within else self.cluster.gpus_per_node)

    @property
    def decode_s(self) -> float:
        name, g = self.compression.compressor, self.cluster.gpus_per_node
        if self.compression.device == "cpu":
            least, encoding, decoding = _CPU[name]
            bits = 32.0 * math.prod(self.shape)
            return least + bits / encoding + bits / decoding
        if name == "powersgd":
            return self._product_s(self.compression.parameter or 1) + _KERNEL_S
        if name == "sfb":
            return (self.cluster.workers - 1) * self._product_s(self.rows or 1)
        if not self.twice:
            return self._kernel_s(1, 1 if self.within else g)
        return 2 * self._kernel_s(1, 1) + self._kernel_s(0, g)

    def _kernel_s(self, which: int, shares: int) -> float:
        """Encoding (0) or decoding (1) a gradient's share."""
        times_s = self.coding_s.get(self.compression.compressor) or GPU_S[self.compression.compressor]
        return times_s[which] * max(1.0, math.prod(self.shape) / shares / _MEGA)

    def _product_s(self, inner: float) -> float:
        """Roofline of the product of a matrix as large as the gradient and one of ``inner`` columns."""
        elements = math.prod(self.shape)
        operations = 2 * elements * inner / self.accelerator.flops_per_s
        return max(operations, 4 * (elements + inner * sum(matrix(self.shape))) / self.accelerator.memory_bytes_per_s)


def _short(figure: float) -> float:
    """Six significant digits."""
    return float(f"{figure:.6g}")
