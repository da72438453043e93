"""The answer to a co-design problem: a strategy for every layer, and a topology design."""

from typing import ClassVar, Literal

from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.contracts import Solution
from ddlopt.models.errors import SolutionError
from ddlopt.models.topology.solution import TopologyDesign


class CodesignPlan(Solution):
    """Strategies, links, rings and routes for a :class:`~ddlopt.models.codesign.instance.CodesignInstance`.

    Parameters
    ----------
    strategies : tuple of str
        Names, one for each layer in the instance's order.
    design : TopologyDesign
        For the job that the strategies make: its rings are of the groups of
        :func:`~ddlopt.models.codesign.job.job_of`, in that order.
    """

    kind: ClassVar[str] = "codesign plan"

    family: Literal["codesign"] = "codesign"
    strategies: tuple[str, ...]
    design: TopologyDesign

    def choices(self, instance: CodesignInstance) -> tuple[int, ...]:
        """Index of each layer's strategy.

        Raises
        ------
        SolutionError
            If there are not as many as layers, or a layer has no such strategy.
        """
        if len(self.strategies) != len(instance.layers):
            raise SolutionError(
                f"the plan has {len(self.strategies)} strategies, but '{instance.name}' has {len(instance.layers)} "
                f"layers; give one for each"
            )
        choices = []
        for layer, name in zip(instance.layers, self.strategies, strict=True):
            names = [strategy.name for strategy in layer.strategies]
            if name not in names:
                raise SolutionError(f"layer '{layer.name}' has no strategy '{name}'; it has: {', '.join(names)}")
            choices.append(names.index(name))
        return tuple(choices)
