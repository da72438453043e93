"""The model of a timeline, on a solver, by itself or after a heuristic that has a plan at once."""

from ddlopt.models.compression.timeline.formulations.overlap_timeline import OverlapTimeline
from ddlopt.solvers.backends import backend
from ddlopt.solvers.compression.timeline.espresso import Espresso
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.exact import Exact
from ddlopt.solvers.wrappers.warm_started import WarmStarted


def along_timeline(solver: str) -> Method:
    """The model of messages, for timelines without lanes and for levels."""
    return Exact("overlap-timeline", "compression", OverlapTimeline(), backend(solver))


def opened(solver: str) -> Method:
    """Espresso's greedy with any option for any size, and the model from its plan on."""
    return WarmStarted("exact", "compression", Espresso(thresholds=False), lambda _: along_timeline(solver))
