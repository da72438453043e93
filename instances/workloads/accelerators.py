"""Accelerators: what one sustains in matrix products, in convolutions and in reading memory."""

from dataclasses import dataclass

from ddlopt.instances.options import one_of
from ddlopt.instances.workloads.networks.layers import EmbeddingTable, Layer


@dataclass(frozen=True)
class Accelerator:
    """What a GPU sustains: an assumption, stated as a share of its published peaks.

    Parameters
    ----------
    name : str
    flops_per_s, convolution_flops_per_s : float
        Sustained rates of matrix products and of convolutions.
    memory_bytes_per_s : float
    """

    name: str
    flops_per_s: float
    convolution_flops_per_s: float
    memory_bytes_per_s: float

    def __str__(self) -> str:
        return self.name

    def forward_s(self, layer: Layer, batch: int) -> float:
        """Roofline: a layer takes as long as its operations or its memory traffic, whichever is longer."""
        rate = self.convolution_flops_per_s if layer.convolution else self.flops_per_s
        return max(batch * layer.flops / rate, layer.moved_bytes(batch) / self.memory_bytes_per_s)

    def lookup_s(self, table: EmbeddingTable, batch: int) -> float:
        """Time to read and sum a table's rows for a batch; memory-bound."""
        return table.moved_bytes(batch) / self.memory_bytes_per_s


A100 = Accelerator(
    "A100-40GB at 85% of FP32, 50% of TF32 in convolutions, 67% of memory bandwidth",
    flops_per_s=0.85 * 19.5e12,
    convolution_flops_per_s=0.50 * 156e12,
    memory_bytes_per_s=0.67 * 1555e9,
)
"""Peaks as in NVIDIA's data sheet (dense). The shares are assumptions, close to the operator times that FlexNet's
authors measured on an A100, with products in FP32 and convolutions in TF32."""

V100 = Accelerator(
    "V100-SXM2 at 85% of FP32, 67% of memory bandwidth",
    flops_per_s=0.85 * 15.7e12,
    convolution_flops_per_s=0.85 * 15.7e12,
    memory_bytes_per_s=0.67 * 900e9,
)
"""Peaks as in NVIDIA's data sheet; no TF32. The shares are assumed to be the A100's."""

P100 = Accelerator(
    "P100-PCIe at 85% of FP32, 67% of memory bandwidth",
    flops_per_s=0.85 * 9.3e12,
    convolution_flops_per_s=0.85 * 9.3e12,
    memory_bytes_per_s=0.67 * 732e9,
)
"""Peaks as published for the card with 16 GB; the shares are assumed to be the A100's."""

GTX_1080_TI = Accelerator(
    "GTX 1080 Ti at 85% of FP32, 67% of memory bandwidth",
    flops_per_s=0.85 * 11.3e12,
    convolution_flops_per_s=0.85 * 11.3e12,
    memory_bytes_per_s=0.67 * 484e9,
)
"""3584 cores at 1.582 GHz, two operations a cycle; 484 GB/s. The shares are assumed to be the A100's."""

ACCELERATORS = {"v100": V100, "a100": A100, "p100": P100, "1080ti": GTX_1080_TI}
"""By the word that asks for one."""


def accelerator_of(wanted: str | Accelerator) -> Accelerator:
    """An accelerator, or the one that a word asks for.

    Raises
    ------
    OptionError
        If there is none of that name.
    """
    if isinstance(wanted, Accelerator):
        return wanted
    one_of("accelerator", wanted, tuple(ACCELERATORS))
    return ACCELERATORS[wanted]
