"""Units in which models measure times and errors, so that tolerances of solvers, which are absolute, are small."""

from ddlopt.models.compression.levels.bounds import level_bound
from ddlopt.models.compression.levels.instance import GradedGradient, LevelInstance, error_at
from ddlopt.models.compression.timeline.bounds import timeline_bound
from ddlopt.models.compression.timeline.instance import CompressionInstance
from ddlopt.models.tolerances import ROUNDING

# Solvers hold rows to 1e-6, so to 1e-9 and better of such figures, and none is so large that it drowns the others.
TIME_BUDGET, LEAST_TIME, LARGEST_TIME = 1e4, 1e3, 1e7
# As for times; errors need fewer digits, as the check allows 1e-9 of a budget only.
ERROR_BUDGET, LARGEST_EXCESS = 1e3, 1e5


def time_unit_s(instance: CompressionInstance | LevelInstance) -> float:
    """Seconds such that a time budget is 1e4, or else a bound on the time 1e3 and no time more than 1e7."""
    if instance.time_budget_s is not None:
        return instance.time_budget_s / TIME_BUDGET
    least = level_bound(instance) if isinstance(instance, LevelInstance) else timeline_bound(instance)
    return max(least / LEAST_TIME, most_s(instance) / LARGEST_TIME) or 1.0


def error_unit(instance: CompressionInstance | LevelInstance) -> float:
    """An error such that the budget exceeds the least by 1e3, or that a gradient's excess is up to 1e5 (or less)."""
    room = excess_room(instance)
    if room is not None:
        return room / ERROR_BUDGET or 1.0
    return max(instance.least_error, _largest_excess(instance) / LARGEST_EXCESS) or 1.0


def excess_room(instance: CompressionInstance | LevelInstance) -> float | None:
    """How far the error may exceed the least there is; None without a budget."""
    if instance.error_budget is None:
        return None
    return instance.error_budget - instance.least_error + ROUNDING * instance.error_budget


def most_s(instance: CompressionInstance | LevelInstance) -> float:
    """A time that no plan exceeds."""
    if isinstance(instance, LevelInstance):
        longest = (_longest_s(gradient) for gradient in instance.gradients)
    else:
        by_menu = [max(option.encode_s + option.occupation_s for option in menu) for menu in instance.menus]
        longest = (by_menu[gradient.menu] for gradient in instance.gradients)
    return instance.gradients[-1].ready_s + sum(longest)


def _longest_s(gradient: GradedGradient) -> float:
    by_level = gradient.encode_s_per_level + gradient.wire_s_per_level
    return gradient.encode_s + gradient.launch_s + by_level * gradient.curve.allowed[-1]


def _largest_excess(instance: CompressionInstance | LevelInstance) -> float:
    if isinstance(instance, LevelInstance):
        curves = [gradient.curve for gradient in instance.gradients]
        return max(error_at(curve, curve.allowed[0]) - error_at(curve, curve.allowed[-1]) for curve in curves)
    errors = [[option.error for option in menu] for menu in instance.menus]
    return max(max(menu) - min(menu) for menu in errors)
