"""The problems of the family: kinds of instances and answers, told apart by their field ``problem``."""

from typing import Any, ClassVar, Literal

from ddlopt.models.contracts import Instance, Solution


class ClusterProblem(Instance):
    """Any instance of the family; reading one gives the class that its ``problem`` names."""

    kind: ClassVar[str] = "cluster instance"
    variants: ClassVar[dict[str, type[Any]]] = {}

    family: Literal["cluster"] = "cluster"

    @property
    def size(self) -> int:
        """Number of jobs or gangs that are to be decided on."""
        raise NotImplementedError


class ClusterAnswer(Solution):
    """Any answer of the family; reading one gives the class that its ``problem`` names."""

    kind: ClassVar[str] = "cluster answer"
    variants: ClassVar[dict[str, type[Any]]] = {}

    family: Literal["cluster"] = "cluster"
