"""What accelerators and networks sustain in training steps: peaks, and which part of them.

Of a product of at least 128 · 10⁹ operations an accelerator reaches :data:`LARGE` of its peak, of smaller ones less,
in the proportions of Calculon's file of an A100 (M. Isaev et al., SC 2023); of its memory's bandwidth likewise. Those
parts are calibrated by one measured step each, all other steps are predicted (``benchmarks deployment/step_measured``).
"""

from dataclasses import replace

from ddlopt.instances.workloads.accelerators import MEMORY, TENSOR_CORES, Accelerator
from ddlopt.instances.workloads.networks.rates import Rates, Shares
from ddlopt.instances.workloads.precision import Precision

LARGE: dict[tuple[str, str], float] = {
    ("A100", "bf16"): 0.75,
    ("H100", "bf16"): 0.51,
    ("H100", "fp8"): 0.90,
    ("B200", "fp8"): 0.54,
    ("GB200", "fp8"): 0.49,
}
"""Of the peak, by the name's first word and precision: GPT-3 of 175 billion parameters on 64 A100 (arXiv:2205.05198),
MPT of 7 billion on 128 H100 (llm-foundry), Llama 3 of 70 billion on 64 H100, of 8 billion on 8 B200 and 8 GB200
(Megatron-Bridge). That of an H100 in fp8 is so high since messages of tensor parallelism, which are counted, are hidden
there."""
_LARGE_ELSE = {"bf16": 0.55, "fp8": 0.5, "fp32": 0.85}
"""Where no row was measured: an assumption."""
# As below.
_SIZES: Shares = ((128e9, 1.0), (16e9, 0.90 / 0.95), (1e9, 0.6 / 0.95), (0.0, 0.1 / 0.95))
# As below.
_BYTES: Shares = ((100e6, 0.90), (10e6, 0.75), (1e6, 0.60), (0.0, 0.30))
_VECTOR: Shares = ((16e9, 0.95), (1e9, 0.5), (0.0, 0.1))
"""Parts of what large products reach, of bandwidth, and of other operations' peak, by size: Calculon's of an A100."""
_VECTOR_PART = 0.25
"""Operations other than products, of the peak of those in 16 bits: 78 of an A100's 312."""
ATTENTION = {"A100": 0.60, "H100": 0.35, "H200": 0.35}
"""Fused attention, both passes together, of the peak in 16 bits: FlashAttention-2 as its author measured it."""
_ATTENTION_ELSE = 0.40
"""An assumption."""
INNER, OUTER = 0.80, 0.90
"""Of a link's bandwidth: what collectives reach inside a server, and between servers (0.9 there is Calculon's)."""
INNER_LATENCY_S, OUTER_LATENCY_S = 10e-6, 20e-6
"""Of a collective; Calculon's figures of an A100."""


def rates_of(accelerator: Accelerator, precision: Precision) -> Rates:
    """Of an accelerator; what a cluster's own file says counts as sustained.

    Raises
    ------
    OptionError
        If it does not calculate in that precision.
    """
    sustained = accelerator.at(precision)
    own = accelerator.rates is None
    part = 1.0 if own or precision.name == "fp32" else TENSOR_CORES
    peak = sustained.flops_per_s / part
    wide = peak if own else dict(accelerator.rates or ()).get("bf16", sustained.flops_per_s) / TENSOR_CORES
    large = 1.0 if own else LARGE.get((_card(accelerator), precision.name), _LARGE_ELSE[precision.name])
    memory = sustained.memory_bytes_per_s / (1.0 if own else MEMORY)
    fused = None if own else ATTENTION.get(_card(accelerator), _ATTENTION_ELSE) * wide
    rates = Rates(peak, _VECTOR_PART * wide, memory, _scaled(large), _VECTOR, _BYTES, True, fused)
    return replace(rates, memory_shares=((0.0, 1.0),)) if own else rates


def _card(accelerator: Accelerator) -> str:
    return accelerator.name.replace("-", " ").split()[0]


def _scaled(large: float) -> Shares:
    return tuple((size, share * large) for size, share in _SIZES)
