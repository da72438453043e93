"""The problems of the family: kinds of instances and answers, told apart by their field ``problem``.

Topology design, which gave the family its name, has no such field: files of it were there before the others.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, Literal, Self

from ddlopt.models.contracts import Instance, Solution


def _design(name: str) -> Any:
    """A class of the problem without a field ``problem``."""
    return getattr(import_module("ddlopt.models.topology"), name)


class TopologyProblem(Instance):
    """Any instance of the family; reading one gives the class that its ``problem`` names, or topology design's."""

    kind: ClassVar[str] = "topology instance"
    variants: ClassVar[dict[str, type[Any]]] = {}

    family: Literal["topology"] = "topology"

    @property
    def size(self) -> int:
        """Number of servers or accelerators."""
        raise NotImplementedError

    @classmethod
    def _variant(cls, data: Any, origin: str) -> type[Self]:
        if isinstance(data, Mapping) and "problem" not in data:
            return _design("TopologyInstance")  # type: ignore[no-any-return]
        return super()._variant(data, origin)


class TopologyAnswer(Solution):
    """Any answer of the family; reading one gives the class that its ``problem`` names, or topology design's."""

    kind: ClassVar[str] = "topology answer"
    variants: ClassVar[dict[str, type[Any]]] = {}

    family: Literal["topology"] = "topology"

    @classmethod
    def _variant(cls, data: Any, origin: str) -> type[Self]:
        if isinstance(data, Mapping) and "problem" not in data:
            return _design("TopologyDesign")  # type: ignore[no-any-return]
        return super()._variant(data, origin)
