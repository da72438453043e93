"""The exact method that fits the problem."""

from dataclasses import dataclass
from typing import ClassVar

from ddlopt.models.compression.family import CompressionProblem
from ddlopt.models.compression.forward.instance import ForwardInstance
from ddlopt.models.compression.levels.instance import LevelInstance
from ddlopt.models.compression.sfb.instance import SfbInstance
from ddlopt.models.compression.timeline.instance import CompressionInstance
from ddlopt.models.problem import path_of
from ddlopt.solvers import chain
from ddlopt.solvers.backends import backend
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.exact import Exact
from ddlopt.solvers.wrappers.by_instance import ByInstance
from ddlopt.solvers.wrappers.warm_started import WarmStarted

FAMILY = "compression"


@dataclass(frozen=True)
class Best(ByInstance):
    """What proved optima soonest where all were tried, then from its answer another, if there is a gap left.

    ========================================= ================== ====================
    problem                                   first              then
    ========================================= ================== ====================
    sufficient factors                        ``min-cut``        –
    the same under budgets                    ``parametric-cut`` ``milp``
    timelines with lanes                      ``lane-search``    ``lane-timeline``
    other timelines, levels                   links of the chain ``overlap-timeline``
    the same without links                    ``espresso``       ``overlap-timeline``
    what the next forward pass waits for      ``forward-search`` ``forward-order``
    the same with many parts                  ``forward-search`` ``forward-sides``
    ========================================= ================== ====================

    Parameters
    ----------
    solver : str
        Behind the models.
    """

    solver: str = "highs"

    name: ClassVar[str] = "exact"
    family: ClassVar[str] = FAMILY

    def method(self, instance: CompressionProblem) -> Method:
        """The method that is asked for an instance."""
        if isinstance(instance, SfbInstance):
            return self._sfb(instance)
        if isinstance(instance, ForwardInstance):
            return self._forward(instance)
        assert isinstance(instance, CompressionInstance | LevelInstance)
        return self._timeline(instance)

    def _timeline(self, instance: CompressionInstance | LevelInstance) -> Method:
        if isinstance(instance, CompressionInstance) and instance.lanes:
            return self._along_lanes()

        def model(_: CompressionInstance | LevelInstance, solver: str) -> Method:
            from ddlopt.solvers.compression.timeline.exact import opened

            return opened(solver)

        return chain.exact(path_of(instance), instance, self.solver, model)

    def _forward(self, instance: ForwardInstance) -> Method:
        from ddlopt.models.compression.forward.formulations.forward_order import ForwardOrder
        from ddlopt.models.compression.forward.formulations.forward_sides import ForwardSides
        from ddlopt.solvers.compression.forward.forward_search import ForwardSearch

        order = Exact("forward-order", FAMILY, ForwardOrder(), backend(self.solver))
        if order.refuses(instance) is None:
            return self._opened(ForwardSearch(), order)
        counts = Exact("forward-counts", FAMILY, ForwardSides(first=1, last=1, every=0), backend(self.solver))
        sides = Exact("forward-sides", FAMILY, ForwardSides(), backend(self.solver))
        return self._opened(self._opened(ForwardSearch(), counts), sides)

    def _along_lanes(self) -> Method:
        from ddlopt.models.compression.timeline.formulations.lane_timeline import LaneTimeline
        from ddlopt.solvers.compression.timeline.lane_search import LaneSearch

        return self._opened(LaneSearch(), Exact("lane-timeline", FAMILY, LaneTimeline(), backend(self.solver)))

    def _sfb(self, instance: SfbInstance) -> Method:
        if not instance.budgeted:
            from ddlopt.solvers.compression.sfb.min_cut import MinCut

            return MinCut()
        from ddlopt.models.compression.sfb.formulations.sfb_milp import SfbMilp
        from ddlopt.solvers.compression.sfb.parametric_cut import ParametricCut

        return self._opened(ParametricCut(), Exact("milp", FAMILY, SfbMilp(), backend(self.solver)))

    def _opened(self, opening: Method, model: Method) -> Method:
        return WarmStarted(self.name, FAMILY, opening, lambda _: model)
