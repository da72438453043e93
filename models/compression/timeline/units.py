"""Units in which models measure times and errors, so that tolerances of solvers, which are absolute, are small."""

import numpy as np

from ddlopt.models.compression.levels.instance import GradedGradient, LevelInstance
from ddlopt.models.compression.timeline.bounds import closed_form
from ddlopt.models.compression.timeline.choices import Choices, as_timeline, choices_of
from ddlopt.models.compression.timeline.instance import CompressionInstance
from ddlopt.models.remembered import remembered
from ddlopt.models.tolerances import ROUNDING
from ddlopt.models.units import between, unit_of


@remembered
def time_unit_s(instance: CompressionInstance | LevelInstance) -> float:
    """Seconds of a unit, of which the time is about a thousand.

    Between the closed form with the cheapest of everything and the time of a simple plan. With goal ``error`` that of
    the budget, if it is less than everything with the least error takes.
    """
    timeline = as_timeline(instance)
    choices = choices_of(timeline)
    simple = simple_s(choices, exact_errors=timeline.goal == "error" or timeline.error_budget is not None)
    if timeline.time_budget_s is not None:
        return unit_of(min(timeline.time_budget_s, simple), timeline.time_budget_s)
    wire = choices.wire_s if timeline.fusion or timeline.lanes else choices.occupation_s
    low = _ready_and_encoded(choices) if timeline.lanes else closed_form(choices, wire)
    return unit_of(between(low, simple), most_s(timeline))


@remembered
def error_unit(instance: CompressionInstance | LevelInstance) -> float:
    """An error of which there are about a thousand.

    With a budget as much as that leaves beyond the least error, if all gradients together can use it up; without, the
    least error, or what the quickest options have beyond it and the least that any option has.
    """
    timeline = as_timeline(instance)
    choices = choices_of(timeline)
    excess = choices.error - choices.error.min(axis=1, keepdims=True)
    there = choices.labels >= 0
    largest = float(np.where(there, excess, 0.0).max(axis=1).sum())
    room = excess_room(instance)
    if room is not None:
        return unit_of(min(room, largest), largest)
    some = np.where(there & (excess > 0), excess, np.inf).min(axis=1)
    quickest = np.where(there, choices.encode_s + choices.occupation_s, np.inf).argmin(axis=1)
    beyond = float(excess[np.arange(len(quickest)), quickest].sum())
    least = float(some[np.isfinite(some)].sum())
    return unit_of(max(timeline.least_error, between(least, beyond)), largest)


def excess_room(instance: CompressionInstance | LevelInstance) -> float | None:
    """How far the error may exceed the least there is; None without a budget."""
    if instance.error_budget is None:
        return None
    return instance.error_budget - instance.least_error + ROUNDING * instance.error_budget


def error_limit(instance: CompressionInstance | LevelInstance) -> float:
    """The same in units, for the row of the budget."""
    room = excess_room(instance)
    assert room is not None
    return room / error_unit(instance)


def time_limit(instance: CompressionInstance | LevelInstance) -> float:
    """The time budget in units, for its row."""
    assert instance.time_budget_s is not None
    return instance.time_budget_s / time_unit_s(instance) * (1 + ROUNDING)


def simple_s(choices: Choices, exact_errors: bool) -> float:
    """A time within which everything is done in a simple plan: the quickest options, or those of the least error."""
    takes = np.where(choices.labels >= 0, choices.encode_s + choices.occupation_s, np.inf)
    if exact_errors:
        takes = np.where(choices.error <= choices.error.min(axis=1, keepdims=True), takes, np.inf)
    return float(choices.ready_s[-1]) + float(takes.min(axis=1).sum())


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


def _ready_and_encoded(choices: Choices) -> float:
    """The longest way of a gradient along its lanes, after the least encoding before it."""
    encode = choices.encode_s.min(axis=1)
    both = (choices.encode_s + choices.occupation_s).min(axis=1)
    return float((choices.ready_s + np.concatenate(([0.0], np.cumsum(encode)[:-1])) + both).max())
