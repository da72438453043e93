"""The model of a timeline, on a solver."""

from ddlopt.models.compression.timeline.formulations.overlap_timeline import OverlapTimeline
from ddlopt.solvers.backends import backend
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.exact import Exact


def along_timeline(solver: str) -> Method:
    """The model of messages, for timelines without lanes and for levels."""
    return Exact("overlap-timeline", "compression", OverlapTimeline(), backend(solver))
