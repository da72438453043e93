"""Layers of a neural network as numbers: what one costs to store, to compute and to move, from its shape alone.

Counts are of numbers, in single precision unless a layer says otherwise, and of floating-point operations for
*one sample* in the forward direction; a multiplication and an addition are two operations.
"""

import itertools
from dataclasses import dataclass

from ddlopt.instances.workloads.precision import FP32, Precision

BYTES_PER_NUMBER = FP32.number_bytes
"""Weights, gradients and activations are single precision (fp32), unless a layer says otherwise."""


ParameterTensors = tuple[tuple[str, tuple[int, ...]], ...]
"""Names and shapes."""


@dataclass(frozen=True)
class Layer:
    """A layer that every server holds a copy of; its gradient is all-reduced.

    Parameters
    ----------
    name : str
    parameters : int
        Numbers that training changes.
    flops : int
        Operations of one sample's forward pass.
    inputs, outputs : int
        Numbers that one sample's forward pass reads and writes besides the parameters.
    convolution : bool
        Whether the operations are a convolution's (GPU libraries run these at another precision).
    tensors : tuple of (str, tuple of int)
        Names and shapes of the parameter tensors, in the order in which the backward pass has their gradients:
        a bias (outputs,) before its weight (outputs, inputs, …), a scale before its shift. Together ``parameters``
        numbers.
    precision : Precision
    """

    name: str
    parameters: int
    flops: int
    inputs: int
    outputs: int
    convolution: bool = False
    tensors: ParameterTensors = ()
    precision: Precision = FP32

    @property
    def gradient_bytes(self) -> int:
        """Bytes that each server contributes to the all-reduce."""
        return self.precision.gradient_bytes * self.parameters

    @property
    def activation_bytes(self) -> int:
        """Bytes of one sample's output."""
        return self.precision.number_bytes * self.outputs

    def moved_bytes(self, batch: int) -> int:
        """Bytes between memory and processor in the forward pass of a batch."""
        return self.precision.number_bytes * (self.parameters + batch * (self.inputs + self.outputs))


@dataclass(frozen=True)
class EmbeddingTable:
    """A table that lives on one server; a sample looks up ``bag`` of its rows and uses their sum.

    Only the pooled vector and its gradient travel, never the rows.
    """

    name: str
    rows: int
    dimension: int
    bag: int = 1

    @property
    def parameters(self) -> int:
        """Numbers in the table."""
        return self.rows * self.dimension

    @property
    def pooled_bytes(self) -> int:
        """Bytes of one sample's pooled vector."""
        return BYTES_PER_NUMBER * self.dimension

    def moved_bytes(self, batch: int) -> int:
        """Bytes between memory and processor in the forward pass of a batch: the rows read, the sum written."""
        return BYTES_PER_NUMBER * batch * (self.bag + 1) * self.dimension


def dense(name: str, inputs: int, outputs: int, bias: bool = True, rows: int = 1) -> Layer:
    """A fully connected layer on ``rows`` vectors of a sample: a weight for every pair, a bias for every output."""
    return Layer(
        name,
        parameters=inputs * outputs + bias * outputs,
        flops=2 * rows * inputs * outputs,
        inputs=rows * inputs,
        outputs=rows * outputs,
        tensors=_weight((outputs, inputs), bias),
    )


def _weight(shape: tuple[int, ...], bias: bool) -> ParameterTensors:
    """A weight and, before it, its bias."""
    return ((("bias", shape[:1]),) if bias else ()) + (("weight", shape),)


def mlp(name: str, widths: list[int]) -> list[Layer]:
    """Fully connected layers from ``widths[0]`` inputs through every further width."""
    return [dense(f"{name}.{place}", *shape) for place, shape in enumerate(itertools.pairwise(widths))]


def window_positions(size: int, kernel: int, stride: int, padding: int) -> int:
    """Positions of a sliding window along one side of an image."""
    return (size + 2 * padding - kernel) // stride + 1


def convolution(
    name: str, size: int, channels: tuple[int, int], kernel: int, stride: int = 1, padding: int = 0, bias: bool = True
) -> Layer:
    """A square convolution over a ``size`` × ``size`` image, from ``channels[0]`` to ``channels[1]`` channels."""
    inputs, outputs = channels
    pixels = window_positions(size, kernel, stride, padding) ** 2
    return Layer(
        name,
        parameters=kernel * kernel * inputs * outputs + bias * outputs,
        flops=2 * kernel * kernel * inputs * outputs * pixels,
        inputs=inputs * size * size,
        outputs=outputs * pixels,
        convolution=True,
        tensors=_weight((outputs, inputs, kernel, kernel), bias),
    )


def normalisation(name: str, channels: int, positions: int = 1) -> Layer:
    """Batch or layer normalisation: a scale and a shift per channel; about eight operations per number."""
    numbers = channels * positions
    tensors = (("scale", (channels,)), ("shift", (channels,)))
    return Layer(name, 2 * channels, flops=8 * numbers, inputs=numbers, outputs=numbers, tensors=tensors)


def pooling(name: str, channels: int, size: int, kernel: int, stride: int, padding: int = 0) -> Layer:
    """Maximum or mean over a sliding window; nothing to train."""
    pixels = window_positions(size, kernel, stride, padding) ** 2
    return Layer(name, 0, channels * kernel * kernel * pixels, channels * size * size, channels * pixels)


def attention(name: str, hidden: int, sequence: int) -> list[Layer]:
    """Multi-head self-attention: query, key, value and output projections, and the products among the positions.

    The number of heads cuts the vectors into pieces and changes no count.
    """
    projections = [dense(f"{name}.{part}", hidden, hidden, rows=sequence) for part in ("query", "key", "value")]
    return [
        *projections,
        attention_products(f"{name}.products", hidden, sequence),
        dense(f"{name}.output", hidden, hidden, rows=sequence),
    ]


def attention_products(name: str, hidden: int, sequence: int) -> Layer:
    """Queries with keys, and the weights that follow with values; nothing to train."""
    return Layer(
        name,
        parameters=0,
        flops=2 * 2 * sequence * sequence * hidden,
        inputs=3 * sequence * hidden,
        outputs=sequence * hidden,
    )


def word_embedding(name: str, rows: int, hidden: int, sequence: int) -> Layer:
    """A table small enough to be copied to every server, trained with dense gradients."""
    numbers = sequence * hidden
    return Layer(name, rows * hidden, 0, numbers, numbers, tensors=_weight((rows, hidden), bias=False))
