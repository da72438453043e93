"""A special method for timelines and levels, and when ``exact`` asks it."""

from ddlopt.frontier.compression.timeline.label_setting.label_setting import LabelSetting
from ddlopt.frontier.compression.timeline.priced_choices.priced_choices import PricedChoices
from ddlopt.models.compression.levels.instance import LevelInstance
from ddlopt.models.compression.timeline.instance import CompressionInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.wrappers.warm_started import WarmStarted


def link(instance: CompressionInstance | LevelInstance, _: str) -> Method | None:
    """A search at prices and then label setting, where no error counts."""
    if instance.goal == "error" or instance.error_budget is not None:
        return None
    return WarmStarted("exact", "compression", PricedChoices(), lambda _: LabelSetting())
