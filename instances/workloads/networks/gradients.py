"""The gradients of a backward pass: which tensors, in which order, and when each is there."""

import itertools
import math
from dataclasses import dataclass

from ddlopt.instances.workloads.accelerators import Accelerator
from ddlopt.instances.workloads.training import PASSES, Workload


@dataclass(frozen=True)
class BackwardGradient:
    """The gradient of one parameter tensor.

    Parameters
    ----------
    name : str
        The layer's and the tensor's, e.g. ``"dense.0.weight"``.
    shape : tuple of int
        (outputs, inputs) of a dense layer, (outputs, inputs, kernel, kernel) of a convolution, (rows, numbers of a
        row) of a table, (numbers,) of a bias, scale or shift.
    ready_s : float
        Since the start of the backward pass, if nothing delays it.
    """

    name: str
    shape: tuple[int, ...]
    ready_s: float

    @property
    def elements(self) -> int:
        """Numbers in it."""
        return math.prod(self.shape)


def backward_gradients(
    workload: Workload, accelerator: Accelerator, batch: int | None = None
) -> tuple[BackwardGradient, ...]:
    """Gradients of all parameter tensors of the replicated layers, in the order in which the backward pass has them.

    The last layer comes first. A layer's backward pass takes two of its forward passes, and its gradients are there at
    the end of it. Parameters that several layers share belong to the first of them, so that their gradient comes when
    all have added to it.

    Parameters
    ----------
    workload : Workload
    accelerator : Accelerator
        Whose roofline gives the times.
    batch : int, optional
        Samples of a GPU; by default the workload's.
    """
    samples = workload.batch_per_gpu if batch is None else batch
    backwards = workload.layers[::-1]
    ends_s = itertools.accumulate((PASSES - 1) * accelerator.forward_s(layer, samples) for layer in backwards)
    return tuple(
        BackwardGradient(f"{layer.name}.{tensor}", shape, end_s)
        for layer, end_s in zip(backwards, ends_s, strict=True)
        for tensor, shape in layer.tensors
    )
