"""Accelerators: what one sustains in matrix products, in convolutions and in reading memory.

Peaks are nominal, dense figures of the makers' data sheets, not measured here:

============ ======== ====== ====== ======== ========= ========== ===========================================
accelerator  fp32     16 bit fp8    memory   bandwidth link       data sheet
============ ======== ====== ====== ======== ========= ========== ===========================================
v100         15.7     125           32 GB    900 GB/s  150 GB/s   NVIDIA V100 SXM2
a100         19.5     312           40 GB    1555      300        NVIDIA A100 40GB SXM
a100-80      19.5     312           80 GB    2039      300        NVIDIA A100 80GB SXM
h100         67       989.4  1978.9 80 GB    3350      450        NVIDIA H100 SXM
h200         67       989.4  1978.9 141 GB   4800      450        NVIDIA H200 SXM
b200         75       2250   4500   180 GB   8000      900        NVIDIA HGX B200
gb200        80       2500   5000   186 GB   8000      900        NVIDIA GB200 NVL72, of one of its 72
mi300x       163.4    1307.4 2614.9 192 GB   5300      448        AMD Instinct MI300X
tpu-v5p      76.5     459           95 GB    2765      600        Google Cloud TPU v5p
trainium2    181      667    1299   96 GB    2900      640        AWS Trainium2
============ ======== ====== ====== ======== ========= ========== ===========================================

Rates are TFLOP/s; a link is all that connects an accelerator with its neighbours, per direction. fp32 of the TPU is six
passes of bf16, which is how its compiler gives full precision; of the 16-bit numbers the V100 has fp16 alone.
"""

from dataclasses import dataclass, replace

from ddlopt.instances.options import one_of
from ddlopt.instances.workloads.networks.layers import EmbeddingTable, Layer
from ddlopt.instances.workloads.precision import Precision
from ddlopt.models.errors import OptionError

# Definitions.
_TERA, _GIGA = 1e12, 1e9


@dataclass(frozen=True)
class Accelerator:
    """What a GPU sustains: an assumption, stated as a share of its published peaks.

    Parameters
    ----------
    name : str
    flops_per_s, convolution_flops_per_s : float
        Sustained rates of matrix products and of convolutions, in fp32.
    memory_bytes_per_s : float
    rates : tuple of (str, float)
        Sustained rates of products in other precisions, by name. None: it has one rate, whatever the precision.
    memory_gigabytes : float, optional
        What its memory holds, in 10⁹ bytes.
    link_gigabytes_per_s : float, optional
        To its neighbours in a server, per direction.
    """

    name: str
    flops_per_s: float
    convolution_flops_per_s: float
    memory_bytes_per_s: float
    rates: tuple[tuple[str, float], ...] | None = None
    memory_gigabytes: float | None = None
    link_gigabytes_per_s: float | None = None

    def __str__(self) -> str:
        return self.name

    def has(self, precision: Precision) -> bool:
        """Whether it calculates in that precision; one whose rates were measured does in what they were."""
        return self.rates is None or precision.name == "fp32" or precision.name in dict(self.rates)

    def at(self, precision: Precision) -> "Accelerator":
        """The same accelerator, with the rates of a precision in place of those of fp32.

        Raises
        ------
        OptionError
            If it does not calculate in that precision.
        """
        if self.rates is None or precision.name == "fp32":
            return self
        rates = dict(self.rates)
        if not self.has(precision):
            known = ", ".join(("fp32", *rates))
            raise OptionError(f"precision is '{precision}', which {self.name} does not have; use one of: {known}")
        rate, card = rates[precision.name], self.name.partition(" at ")[0]
        told = f"{card} at {TENSOR_CORES:.0%} of its peak in {precision}, {MEMORY:.0%} of memory bandwidth"
        return replace(self, name=told, flops_per_s=rate, convolution_flops_per_s=rate, rates=None)

    def forward_s(self, layer: Layer, batch: int) -> float:
        """Roofline: a layer takes as long as its operations or its memory traffic, whichever is longer."""
        rate = self.convolution_flops_per_s if layer.convolution else self.flops_per_s
        return max(batch * layer.flops / rate, layer.moved_bytes(batch) / self.memory_bytes_per_s)

    def lookup_s(self, table: EmbeddingTable, batch: int) -> float:
        """Time to read and sum a table's rows for a batch; memory-bound."""
        return table.moved_bytes(batch) / self.memory_bytes_per_s


_PRODUCTS, _CONVOLUTIONS, TENSOR_CORES, MEMORY = 0.85, 0.50, 0.60, 0.67
"""Parts of the peaks that are sustained. Assumptions: the first, second and last are close to the operator times that
FlexNet's authors measured on an A100, with products in FP32 and convolutions in TF32. The third is for products in 16
and 8 bits: more than the 40 to 55 % of the peak that whole training steps publish, which have much that is no product.
"""


def _accelerator(
    name: str,
    fp32: float,
    bandwidth: float,
    convolutions: float | None = None,
    bf16: float | None = None,
    fp8: float | None = None,
    memory: float | None = None,
    link: float | None = None,
) -> Accelerator:
    """From peaks in TFLOP/s and GB/s; ``convolutions``: their peak, if it is not that of products in fp32."""
    part, peak = (_PRODUCTS, fp32) if convolutions is None else (_CONVOLUTIONS, convolutions)
    faster = {"bf16": bf16, "fp8": fp8}
    told = f"{_PRODUCTS:.0%} of FP32" + (f", {part:.0%} of TF32 in convolutions" if convolutions else "")
    return Accelerator(
        f"{name} at {told}, {MEMORY:.0%} of memory bandwidth",
        flops_per_s=_PRODUCTS * (fp32 * _TERA),
        convolution_flops_per_s=part * (peak * _TERA),
        memory_bytes_per_s=MEMORY * (bandwidth * _GIGA),
        rates=tuple((which, TENSOR_CORES * (peak * _TERA)) for which, peak in faster.items() if peak) or None,
        memory_gigabytes=memory,
        link_gigabytes_per_s=link,
    )


A100 = _accelerator("A100-40GB", 19.5, 1555, 156, bf16=312, memory=40, link=300)
V100 = _accelerator("V100-SXM2", 15.7, 900, bf16=125, memory=32, link=150)
"""No TF32, and 16 bits are fp16."""
P100 = _accelerator("P100-PCIe", 9.3, 732, memory=16)
"""Peaks as published for the card with 16 GB; its products in 16 bits are taken to run at the rate of fp32."""
GTX_1080_TI = _accelerator("GTX 1080 Ti", 11.3, 484, memory=11)
"""3584 cores at 1.582 GHz, two operations a cycle; 484 GB/s."""

ACCELERATORS = {
    "v100": V100,
    "a100": A100,
    "p100": P100,
    "1080ti": GTX_1080_TI,
    "a100-80": _accelerator("A100-80GB", 19.5, 2039, 156, bf16=312, memory=80, link=300),
    "h100": _accelerator("H100-SXM", 67, 3350, 494.7, bf16=989.4, fp8=1978.9, memory=80, link=450),
    "h200": _accelerator("H200-SXM", 67, 4800, 494.7, bf16=989.4, fp8=1978.9, memory=141, link=450),
    "b200": _accelerator("B200-HGX", 75, 8000, 1125, bf16=2250, fp8=4500, memory=180, link=900),
    "gb200": _accelerator("GB200", 80, 8000, 1250, bf16=2500, fp8=5000, memory=186, link=900),
    "mi300x": _accelerator("MI300X", 163.4, 5300, 653.7, bf16=1307.4, fp8=2614.9, memory=192, link=448),
    "tpu-v5p": _accelerator("TPU v5p", 459 / 6, 2765, bf16=459, memory=95, link=600),
    "trainium2": _accelerator("Trainium2", 181, 2900, bf16=667, fp8=1299, memory=96, link=640),
}
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
