"""The problems of the family: five kinds of instances and answers, told apart by their field ``problem``."""

from typing import Any, ClassVar, Literal

from ddlopt.models.contracts import Instance, Solution


class DeploymentProblem(Instance):
    """Any instance of the family; reading one gives the class that its ``problem`` names."""

    kind: ClassVar[str] = "deployment instance"
    variants: ClassVar[dict[str, type[Any]]] = {}

    family: Literal["deployment"] = "deployment"

    @property
    def size(self) -> int:
        """Number of groups of operators, or of nodes, that are to be decided on."""
        raise NotImplementedError


class DeploymentAnswer(Solution):
    """Any answer of the family; reading one gives the class that its ``problem`` names."""

    kind: ClassVar[str] = "deployment answer"
    variants: ClassVar[dict[str, type[Any]]] = {}

    family: Literal["deployment"] = "deployment"
