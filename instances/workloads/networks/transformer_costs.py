"""What a transformer's training costs a device: operations, activations, state and messages, each by a formula.

With s tokens of a sample, b samples, hidden size h, a heads of d numbers and c of keys and values, feed-forward width f
(of all experts that a token visits, and of the one that all do), t devices that share a layer, and two bytes a number:

============ ======================================================= ==================================================
what         formula                                                 source
============ ======================================================= ==================================================
operations   forward as the layers count them, backward twice that   Korthikanti et al., arXiv:2205.05198, appendix A
activations  sb (8h + 4ad + 4cd + 6f) / t + 4asb / t, gated;         the same, section 4, for plain layers and without
of a block   sb (8h + 4ad + 4cd + 4f) / t, plain                     dropout masks; gated ones counted likewise
recomputed   2sbh / t                                                the same, section 5
exchanged    4 all-reduces of 2sbh in a block, 6 if recomputed       M. Shoeybi et al., arXiv:1909.08053, figure 4
============ ======================================================= ==================================================

Attention is fused: of its scores a number for each query is kept (log-sum-exp, four bytes). Devices that share a layer
also share its sequence where tensors are whole (sequence parallelism), so that all activations are shared; keys and
values of fewer heads than devices are kept by each of them.
"""

from ddlopt.instances.workloads.accelerators import Accelerator
from ddlopt.instances.workloads.networks.layers import Layer
from ddlopt.instances.workloads.networks.transformer_parts import Part
from ddlopt.instances.workloads.networks.transformers import Transformer
from ddlopt.instances.workloads.precision import Precision
from ddlopt.instances.workloads.training import PASSES

_SUM_BYTES = 4
"""Fused attention keeps the logarithm of a sum for each query of a head, in 32 bits."""


def activation_bytes(
    sizes: Transformer,
    block: str,
    samples: int,
    tensor: int,
    precision: Precision,
    sequence_parallel: bool = True,
    dropout: bool = False,
    scores: bool = False,
) -> float:
    """What a device keeps of a block for a number of samples: of each part, and of the normalisation before it.

    Parameters
    ----------
    sizes : Transformer
    block : str
    samples, tensor : int
    precision : Precision
    sequence_parallel : bool
        Whether devices that share the products also share what is outside of them.
    dropout : bool
        Whether there is dropout behind both layers, whose masks take a byte a number; and on scores, if these are kept.
    scores : bool
        Whether attention is not fused: what softmax gives is kept.
    """
    outside = tensor if sequence_parallel else 1
    kept = 0.0
    for part in sizes.parts(block):
        whole, inner = _kept_bytes(sizes, block, part, tensor, precision)
        kept += (whole + dropout * sizes.hidden) / outside + inner
        if scores and part in ("attention", "cross"):
            numbers = sizes.seen(part) * (precision.number_bytes + dropout * (precision.number_bytes + 1))
            kept += (numbers - _SUM_BYTES) * sizes.heads / tensor
    return sizes.sequence * samples * kept


def _kept_bytes(sizes: Transformer, block: str, part: Part, tensor: int, precision: Precision) -> tuple[float, float]:
    """Of a token: what devices that share the products have whole, or share the sequence of, and what each has else."""
    number, normed = precision.number_bytes, sizes.hidden
    if part == "feed":
        width, given = sizes.width, sizes.hidden
        if sizes.has_experts(block):
            width = sizes.chosen * (sizes.expert_width or sizes.width) + sizes.shared_width
            given = sizes.chosen * (sizes.latent_experts or sizes.hidden)
        return number * (normed + given), number * (3 if sizes.gated else 2) * width / tensor
    if part == "mixer":
        into, scan, _ = sizes.mixing(block)
        made = sum(layer.outputs for layer in into) // sizes.sequence
        return number * 2 * normed, number * (made + scan.outputs // sizes.sequence) / tensor
    own = sizes.heads_of(block)
    queries, keys = (1 + sizes.output_gate) * sizes.heads * own.head, own.keys * own.head
    values = sizes.heads * sizes.value_head(block)
    if sizes.latent is not None:
        # Keys and values are made for all heads, from vectors that are kept as well.
        keys = (sizes.heads * (sizes.head + sizes.value_head(block))) // 2
        queries += sizes.latent.queries + sizes.latent.keys + sizes.latent.turned
    if sizes.indexer is not None:
        queries += (sizes.indexer.heads + 1) * sizes.indexer.head + sizes.indexer.heads
    shared = number * (2 if own.values else 1) * keys * sizes.seen(part) / sizes.sequence / min(tensor, own.keys)
    return number * 2 * normed, (number * (queries + values) + _SUM_BYTES * sizes.heads) / tensor + shared


def input_bytes(sizes: Transformer, samples: int, precision: Precision) -> float:
    """What goes from block to block."""
    return float(precision.number_bytes * sizes.sequence * samples * sizes.hidden)


def layer_time_s(layers: list[Layer], samples: int, tensor: int, accelerator: Accelerator, recomputed: bool) -> float:
    """Of layers that a number of devices shares, forward and backward, by the roofline of each."""
    passes = PASSES + recomputed
    return passes * sum(accelerator.forward_s(layer, samples) for layer in layers) / tensor


def exchange_time_s(size_bytes: float, count: int, tensor: int, bytes_per_s: float) -> float:
    """Of a number of all-reduces over a ring of the devices that share a layer."""
    return count * 2 * (tensor - 1) / tensor * size_bytes / bytes_per_s
