"""The problems of the family: three kinds of instances and answers, told apart by their field ``problem``."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from ddlopt.models.contracts import Instance, Solution

Goal = Literal["time", "error"]
"""Minimise the time under an error budget (or none), or the error under a time budget."""


class CompressionProblem(Instance):
    """Any instance of the family; reading one gives the class that its ``problem`` names."""

    kind: ClassVar[str] = "compression instance"
    variants: ClassVar[dict[str, type[Any]]] = {}

    family: Literal["compression"] = "compression"


class CompressionAnswer(Solution):
    """Any answer of the family; reading one gives the class that its ``problem`` names."""

    kind: ClassVar[str] = "compression answer"
    variants: ClassVar[dict[str, type[Any]]] = {}

    family: Literal["compression"] = "compression"


def refuse_disorder(ready_s: Sequence[float]) -> None:
    """Raise ValueError unless gradients are ready one after the other."""
    for place in range(1, len(ready_s)):
        if ready_s[place] < ready_s[place - 1]:
            raise ValueError(
                f"gradients[{place}].ready_s is {ready_s[place]:g}, but gradients[{place - 1}].ready_s is "
                f"{ready_s[place - 1]:g}; give gradients in the order in which the backward pass has them"
            )
