"""Units in which models measure times and errors, so that tolerances of solvers, which are absolute, are small."""

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression.levels.instance import GradedGradient, LevelInstance
from ddlopt.models.compression.timeline.bounds import closed_form
from ddlopt.models.compression.timeline.choices import Choices, as_timeline, choices_of
from ddlopt.models.compression.timeline.instance import CompressionInstance
from ddlopt.models.remembered import remembered
from ddlopt.models.tolerances import ROUNDING, let_pass, let_pass_at_least
from ddlopt.models.units import between, unit_of

LEAST_TIME = 1e-6
"""Units of which a time counts as 0: a part of 1e-9 of the whole, while some solvers take it for their tolerance."""


@remembered
def time_unit_s(instance: CompressionInstance | LevelInstance) -> float:
    """Seconds of a unit, of which the time is about a thousand.

    Between the closed form with the cheapest of everything and the time of a simple plan. With goal ``error`` that of
    the budget, if it is less than everything with the least error takes.
    """
    timeline = as_timeline(instance)
    choices = choices_of(timeline)
    if timeline.time_budget_s is not None:
        least_errors = simple_s(choices, 0.0)
        return unit_of(min(timeline.time_budget_s, least_errors), timeline.time_budget_s)
    low, simple = least_s(timeline, choices), simple_s(choices, excess_room(timeline))
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
    if timeline.time_budget_s is not None and simple_s(choices, 0.0) <= timeline.time_budget_s:
        # Nothing has to be compressed.
        beyond = 0.0
    return unit_of(max(timeline.least_error, between(least, beyond)), largest)


def excess_room(instance: CompressionInstance | LevelInstance) -> float | None:
    """How far some check may let the error exceed the least there is, however it adds up; None without a budget."""
    if instance.error_budget is None:
        return None
    return may_pass(instance.error_budget) - instance.least_error


def sure_room(instance: CompressionInstance | LevelInstance) -> float | None:
    """How far every check lets the error exceed the least there is; None without a budget."""
    if instance.error_budget is None:
        return None
    return max(0.0, let_pass_at_least(instance.error_budget) - instance.least_error)


def may_pass(budget: float) -> float:
    """The most that some check lets pass of a budget, with what sums in floating point are off by.

    Hardly more than :func:`~ddlopt.models.tolerances.let_pass`, so that an exact method rarely finds what the check
    refuses; and never less than it, as its bounds would pass a solution.
    """
    return let_pass(budget) * (1 + ROUNDING)


def error_limit(instance: CompressionInstance | LevelInstance) -> float:
    """The same in units, for the row of the budget."""
    room = excess_room(instance)
    assert room is not None
    return room / error_unit(instance)


def time_limit(instance: CompressionInstance | LevelInstance) -> float:
    """The time budget in units, for its row, with what the check lets pass."""
    assert instance.time_budget_s is not None
    # A budget that no plan can use up is not written down as what it is: solvers do not like 1e12.
    return may_pass(min(instance.time_budget_s, 2 * most_s(instance))) / time_unit_s(instance)


def least_s(timeline: CompressionInstance, choices: Choices) -> float:
    """Of the options that keep the budget where all others have the least error, the cheapest of everything."""
    may = _within(choices, excess_room(timeline))
    choices = choices._replace(
        encode_s=np.where(may, choices.encode_s, np.inf), wire_s=np.where(may, choices.wire_s, np.inf)
    )
    if timeline.lanes:
        encode = choices.encode_s.min(axis=1)
        both = (choices.encode_s + choices.occupation_s).min(axis=1)
        return float((choices.ready_s + np.concatenate(([0.0], np.cumsum(encode)[:-1])) + both).max())
    return closed_form(choices, choices.wire_s if timeline.fusion else choices.occupation_s)


def simple_s(choices: Choices, room: float | None) -> float:
    """A time within which everything is done in a simple plan: the quickest options that take no more than their share.

    Parameters
    ----------
    choices : Choices
    room : float or None
        What may be left of errors beyond the least, in equal shares.
    """
    may = _within(choices, None if room is None else room / len(choices.counts))
    takes = np.where(may, choices.encode_s + choices.occupation_s, np.inf)
    return float(choices.ready_s[-1]) + float(takes.min(axis=1).sum())


def _within(choices: Choices, room: float | None) -> npt.NDArray[np.bool_]:
    """(n, m) which options there are whose error exceeds the least by no more."""
    there: npt.NDArray[np.bool_] = choices.labels >= 0
    if room is None:
        return there
    least = choices.error.min(axis=1, keepdims=True)
    return there & (np.where(there, choices.error - least, np.inf) <= max(room, 0.0))


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
