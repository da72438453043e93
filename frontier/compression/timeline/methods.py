"""Special methods for timelines and levels, and when ``exact`` and searches ask them."""

from ddlopt.frontier.compression.timeline.label_setting.label_setting import LabelSetting
from ddlopt.models.compression.levels.instance import LevelInstance
from ddlopt.models.compression.timeline.instance import CompressionInstance
from ddlopt.solvers.compression.timeline.exact import along_timeline
from ddlopt.solvers.contracts import Limits, Method, Result
from ddlopt.solvers.wrappers.warm_started import WarmStarted

FAMILY = "compression"
_PARTS = 128
"""Of label setting, a second or so on hundreds of gradients; where they do not suffice, the model is soon quicker."""


def link(instance: CompressionInstance | LevelInstance, solver: str) -> Method | None:
    """Label setting; where errors count, then the model.

    Before the model of timelines without fusion, label setting ends after a number of parts.
    """
    fusion = isinstance(instance, CompressionInstance) and instance.fusion
    if fusion or instance.goal == "error" or instance.error_budget is not None:
        labels = LabelSetting() if fusion else LabelSetting(most_parts=_PARTS)
        return WarmStarted("exact", FAMILY, labels, lambda _: along_timeline(solver))
    return LabelSetting()


def options(timeline: CompressionInstance, limits: Limits, seed: int) -> Result:
    """What label setting finds on a timeline in a second or so: a step of searches that go on from it."""
    return LabelSetting(most_parts=_PARTS).solve(timeline, limits, seed)
