"""The problems of the family: kinds of instances and answers, told apart by their field ``problem``."""

from typing import Any, ClassVar, Literal

from ddlopt.models.contracts import Instance, Solution


class AggregationProblem(Instance):
    """Any instance of the family; reading one gives the class that its ``problem`` names."""

    kind: ClassVar[str] = "aggregation instance"
    variants: ClassVar[dict[str, type[Any]]] = {}

    family: Literal["aggregation"] = "aggregation"

    @property
    def size(self) -> int:
        """Number of parameters, switches or table entries that are to be decided on."""
        raise NotImplementedError


class AggregationAnswer(Solution):
    """Any answer of the family; reading one gives the class that its ``problem`` names."""

    kind: ClassVar[str] = "aggregation answer"
    variants: ClassVar[dict[str, type[Any]]] = {}

    family: Literal["aggregation"] = "aggregation"
