"""The problems of the family: kinds of instances and answers, told apart by their field ``problem``."""

from typing import Any, ClassVar, Literal

from ddlopt.models.contracts import Instance, Solution


class GossipProblem(Instance):
    """Any instance of the family; reading one gives the class that its ``problem`` names."""

    kind: ClassVar[str] = "gossip instance"
    variants: ClassVar[dict[str, type[Any]]] = {}

    family: Literal["gossip"] = "gossip"

    @property
    def size(self) -> int:
        """Number of workers, or of steps that are to be decided on."""
        raise NotImplementedError


class GossipAnswer(Solution):
    """Any answer of the family; reading one gives the class that its ``problem`` names."""

    kind: ClassVar[str] = "gossip answer"
    variants: ClassVar[dict[str, type[Any]]] = {}

    family: Literal["gossip"] = "gossip"
