"""The problems of the family: three kinds of instances and answers, told apart by their field ``problem``."""

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
