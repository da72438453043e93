r"""Menus by the cost formulas of two published planners, Espresso's and HiPress's, as their code has them.

*Espresso* (zhuangwang93/Espresso, Apache-2.0, byteps/torch/mergeComp/scheduler/simulator_espresso.py). Of n numbers,
s = 4n bytes, on N nodes of k GPUs, in microseconds, bytes rounded down to 1000:

================ ====================================================================================
none             300 + b 2(k-1)/k s/1000 + 0.8 · 2(N-1)/N s/1000, where b is 0.02 (NVLink) or 0.4 (PCIe)
fp16             the same with s/2
between nodes    300 + b 2(k-1)/k s/2/1000 + 0.8 · 2(N-1)/N ρs/1000
on both levels   600 + (b 2(k-1)/k + 0.8 · 2(N-1)/N) ρs/1000
================ ====================================================================================

with ρ twice the ratio of a sparsifier, or 1/32. Compressing takes max(1, n/k/2^20) times a figure of the compressor and
the level; of these the encoding delays the backward pass, *and* all of it, encoding and decoding, occupies the wire as
well, but for fp16, whose decoding is not charged. Two messages of 150 us (four) are our reading of the constants, which
matters only where gradients are fused. Compression on CPUs at 20 Gb/s has a lane of its own there (``lanes``): a
gradient goes there when the wire is done with those before it, and neither its messages nor its compression occupy the
wire. Without ``lanes`` it is an option ``between nodes`` that delays nothing and occupies the wire, which is ours.

*HiPress* (Bai et al., "Gradient compression supercharged high-performance data parallel DNN training", SOSP 2021;
mark14wu/hipress, src/SeCoPa). A gradient of m numbers is cut into K parts; a step costs, in ms of x numbers, w x + b,
or a floor where that is less. On N nodes of one GPU, with parameter servers G and B are gathering and broadcasting,
with a ring S is a step, E and D encoding and decoding, and a sixteenth is sent:

======== ======================== ===================================================================================
servers  G(m/K) + B(m/K)          G(m/16K) + B(m/16K) + min(K+1, N) E(m/K) + min(N-1+K, 2(N-1)) D(m/16K)
ring     2(N-1) S(m/K)            2(N-1) S(m/16K) + N E(m/K) + N D(m/16K)
======== ======================== ===================================================================================

They have no timeline; that encoding delays the backward pass is ours. So are errors: two bits for a number are taken
for TernGrad's (Wen et al. 2017, arXiv:1705.07878), which is qsgd of one level, 2.5 standard deviations of normal
entries.
"""

import math
from typing import Literal, NamedTuple

from ddlopt.instances.workloads.compression.compressors import Compression, rounding_of_normals
from ddlopt.models.compression.timeline.instance import Cluster, Option, Stage

ESPRESSO_COMPRESSORS = {"random_k": "randomk", "dgc": "dgc", "sign": "efsignsgd", "onebit": "onebit"}
"""Those that there are figures for, and what Espresso calls them."""
_TOTAL_US = {"random_k": (88, 1000), "dgc": (390, 1400), "sign": (270, 810), "onebit": (620, 2000), "fp16": (26, 26)}
_DECODE_US = {"random_k": (34, 100), "dgc": (34, 100), "sign": (140, 420), "onebit": (170, 520), "fp16": (22, 22)}
"""Of 2^20 numbers: between nodes, on both levels."""
_INTRA_US, _INTER_US = {"nvlink": 0.02, "pcie": 0.4}, 0.8
"""Of 1000 bytes."""
ESPRESSO_LANES = ("wire", "cpu")
"""Its lanes, where compression on CPUs has one of its own."""
# Half of 300 us, a constant of two messages; 20 Gb/s as the released code has it.
_MESSAGE_S, _CPU_BITS_PER_S = 150e-6, 20e9
# Microseconds in seconds.
_US = 1e-6

HIPRESS_NODES = (4, 8, 16)
"""Numbers of nodes with figures."""


def espresso_cluster(nodes: int, gpus_per_node: int, intra: str) -> Cluster:
    """What Espresso's constants say of the hardware, whatever its command line says of the network."""
    return Cluster.model_validate(
        {
            "nodes": nodes,
            "gpus_per_node": gpus_per_node,
            "intra": intra,
            "intra_bandwidth_bytes_per_s": 1000 / (_INTRA_US[intra] * _US),
            "inter_bandwidth_bytes_per_s": 1000 / (_INTER_US * _US),
            "latency_s": _MESSAGE_S,
        }
    )


def espresso_menu(
    shape: tuple[int, ...],
    cluster: Cluster,
    compression: Compression,
    *,
    two_level: bool = True,
    cpu: bool = False,
    energy: float = 1.0,
    lanes: bool = False,
) -> tuple[Option, ...]:
    """No compression, fp16, the compressor between nodes, and maybe on both levels and on CPUs.

    Parameters
    ----------
    shape : tuple of int
    cluster : Cluster
        Numbers of nodes and GPUs, and whether these have NVLink or PCIe; the rest is the planner's.
    compression : Compression
        One of :data:`ESPRESSO_COMPRESSORS` with its ratio.
    two_level, cpu : bool
    energy : float
        Of the gradient, by which errors are multiplied (those of
        :mod:`ddlopt.instances.workloads.compression.compressors`).
    lanes : bool
        Whether options have stages on :data:`ESPRESSO_LANES`.
    """
    elements, fp16 = math.prod(shape), Compression("fp16")
    growth = _US * max(1.0, elements / cluster.gpus_per_node / 2**20)
    part = 1 / 32 if compression.parameter is None else 2 * compression.parameter

    def times(name: str, level: int) -> tuple[float, float]:
        total, decode = _TOTAL_US[name][level], _DECODE_US[name][level]
        return growth * (total - decode), growth * total

    encode_s, _ = times("fp16", 0)
    menu = [
        Option(label="none", launch_s=2 * _MESSAGE_S, wire_s=_espresso_wire_s(cluster, 4 * elements, 1, 1)),
        Option(
            label="fp16",
            compressor="fp16",
            encode_s=encode_s,
            launch_s=2 * _MESSAGE_S,
            wire_s=_espresso_wire_s(cluster, 4 * elements // 2, 1, 1),
            error=energy * fp16.relative_error(shape),
        ),
    ]
    scopes: list[Literal["inter", "all"]] = ["inter", "all"] if two_level else ["inter"]
    for level, scope in enumerate(scopes):
        encode_s, all_s = times(compression.compressor, level)
        option = Option(
            label=compression.label(scope),
            scope=scope,
            **compression.fields,
            encode_s=encode_s,
            launch_s=(4 if level else 2) * _MESSAGE_S,
            wire_s=_espresso_wire_s(cluster, 4 * elements, part if level else 0.5, part),
            decode_s=all_s,
            error=energy * compression.relative_error(shape, 1 if compression.added_up else level + 1),
        )
        menu.append(option)
    if cpu:
        changes = {"device": "cpu", "encode_s": 0.0, "decode_s": 32 * elements / _CPU_BITS_PER_S}
        menu.append(menu[2].model_copy(update=changes | {"label": f"{menu[2].label} cpu"}))
    return tuple(map(_in_stages, menu)) if lanes else tuple(menu)


def _in_stages(option: Option) -> Option:
    """The option on lanes of its own: on a CPU it waits for the wire, and leaves it alone."""
    wire, cpu = ESPRESSO_LANES
    stage = Stage(lane=wire, launch_s=option.launch_s, busy_s=option.wire_s + option.decode_s)
    stages = (stage,) if option.device == "gpu" else (Stage(lane=wire), stage.model_copy(update={"lane": cpu}))
    return option.model_copy(update={"launch_s": 0.0, "wire_s": 0.0, "decode_s": 0.0, "stages": stages})


def _espresso_wire_s(cluster: Cluster, size_bytes: int, within: float, between: float) -> float:
    """Seconds for the parts of a gradient's bytes that travel within and between nodes."""
    N, g = cluster.nodes, cluster.gpus_per_node
    kilobytes = 2 * (g - 1) / g * size_bytes * within // 1000, 2 * (N - 1) / N * size_bytes * between // 1000
    return _US * (_INTRA_US[cluster.intra] * kilobytes[0] + _INTER_US * kilobytes[1])


class _Step(NamedTuple):
    """Milliseconds of a step: ``slope`` x + ``constant``, or ``floor`` where that is less."""

    slope: float
    constant: float
    floor: float

    def __call__(self, numbers: float) -> float:
        bend = max(0.0, (self.floor - self.constant) / self.slope)
        return self.floor if numbers < bend else self.slope * numbers + self.constant


# Regressions of the released planner, in milliseconds: slope per number, constant, floor.
_ENCODE, _DECODE = _Step(1.4133e-8, 5.8938e-2, 0.05408), _Step(6.2041e-9, 1.3956e-1, 0.07287)
# As above.
_RING = _Step(8.5005e-7, 2.0337e-1, 0.09766)
# As above, by workers.
_GATHER = {
    4: _Step(2.7156e-6, 4.1930e-1, 0.15573),
    8: _Step(6.1167e-6, 8.0768e-1, 0.28778),
    16: _Step(1.2937e-5, 1.4406, 0.59503),
}
# As above, by workers.
_BROADCAST = {
    4: _Step(2.7157e-6, 2.2156e-1, 0.14820),
    8: _Step(6.1172e-6, 2.7285e-1, 0.29666),
    16: _Step(1.2915e-5, 4.5538e-1, 0.58353),
}
# Two bits of 32.
_SENT = 1 / 16
_CLIPPED = 2.5
"""Standard deviations, of TernGrad's entries."""
# Milliseconds in seconds.
_MS = 1e-3


def hipress_menu(shape: tuple[int, ...], nodes: int, *, ring: bool = False, energy: float = 1.0) -> tuple[Option, ...]:
    """The gradient in 1 .. N parts, first as it is, then compressed.

    Parameters
    ----------
    shape : tuple of int
    nodes : int
        One of :data:`HIPRESS_NODES`.
    ring : bool
        A ring in place of parameter servers.
    energy : float
        Of the gradient, by which errors are multiplied.
    """
    elements = math.prod(shape)
    error = energy * rounding_of_normals(_CLIPPED)
    plain, compressed = [], []
    for parts in range(1, nodes + 1):
        whole, less = elements / parts, _SENT * elements / parts
        encodings = nodes if ring else min(parts + 1, nodes)
        decodings = nodes if ring else min(nodes - 1 + parts, 2 * (nodes - 1))
        ending = f" in {parts} part" + "s" * (parts > 1)
        plain.append(Option(label=f"none{ending}", wire_s=_MS * _sent_ms(whole, nodes, ring)))
        compressed.append(
            Option(
                label=f"ternary{ending}",
                compressor="qsgd",
                levels=1,
                encode_s=_MS * encodings * _ENCODE(whole),
                wire_s=_MS * _sent_ms(less, nodes, ring),
                decode_s=_MS * decodings * _DECODE(less),
                error=error,
            )
        )
    return (*plain, *compressed)


def _sent_ms(numbers: float, nodes: int, ring: bool) -> float:
    if ring:
        return 2 * (nodes - 1) * _RING(numbers)
    return _GATHER[nodes](numbers) + _BROADCAST[nodes](numbers)
