"""The answer: for every device the order of its passes."""

import re
from typing import ClassVar, Literal, NamedTuple

from ddlopt.models.deployment.family import DeploymentAnswer
from ddlopt.models.deployment.microbatches.instance import MicroBatchInstance

FORWARD, INPUTS, WEIGHTS, WHOLE = "F", "I", "W", "B"
"""Passes as PyTorch's schedules name them: forward, backward for the inputs, for the weights, and both in one."""
_FORM = re.compile(r"([0-9]{1,9})([FIWB])([0-9]{1,9})", re.ASCII)


class Pass(NamedTuple):
    """A pass of a micro-batch through a chunk."""

    chunk: int
    kind: str
    micro_batch: int

    def __str__(self) -> str:
        return f"{self.chunk}{self.kind}{self.micro_batch}"


def pass_of(text: str) -> Pass | None:
    """What a name such as ``2F0`` stands for: chunk 2, forward, micro-batch 0; None if for nothing."""
    found = _FORM.fullmatch(text)
    return None if found is None else Pass(int(found[1]), found[2], int(found[3]))


def kinds_of(instance: MicroBatchInstance, chunk: int) -> tuple[str, ...]:
    """The kinds of passes of a chunk, in the order in which a micro-batch has them."""
    return (FORWARD, WHOLE) if instance.chunks[chunk].weights_s is None else (FORWARD, INPUTS, WEIGHTS)


class MicroBatchOrder(DeploymentAnswer):
    """The passes of every device, in the order in which it runs them; each runs as early as it can.

    Parameters
    ----------
    orders : tuple of tuple of str
        Of each device. A pass is written as in schedules of PyTorch: chunk, kind, micro-batch, where the kinds are F,
        I (B of the problem statement, for the inputs), W, and B where W is within it.
    """

    kind: ClassVar[str] = "order of micro-batches"

    problem: Literal["microbatches"] = "microbatches"
    orders: tuple[tuple[str, ...], ...]
