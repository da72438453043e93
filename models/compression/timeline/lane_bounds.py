"""Lower bounds on the time where there are several lanes: each by itself is a wire, and so is any mixture of them."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression.timeline.choices import Choices, choices_of
from ddlopt.models.compression.timeline.instance import CompressionInstance, Stage

_STEPS = 8
"""Into how many parts the way from one lane to another is divided."""


def mixtures_of(instance: CompressionInstance) -> Iterator[Choices]:
    r"""One-wire problems whose time is at most the instance's.

    Lane l takes gradients :math:`k \ge i` not before :math:`R_i + \sum_{j \le i} e_j`, so the time is at least
    :math:`R_i + \sum_{j \le i} e_j + \sum_{k \ge i} d_{kl}` for every i: that of a wire which is kept for
    :math:`d_{kl}`. The largest over the lanes is at least any mean of these, with weights :math:`\mu_l` that do not
    depend on i: a wire that is kept for :math:`\sum_l \mu_l d_{kl}`. Launching is left out if gradients may be fused.
    """
    figures = [_on_lane(instance, lane) for lane in instance.lanes]
    choices = choices_of(instance)
    none = np.where(choices.labels >= 0, 0.0, np.inf)
    for first, one in enumerate(figures):
        yield choices._replace(wire_s=one, launch_s=none)
        for other in figures[first + 1 :]:
            for step in range(1, _STEPS):
                mixed = (step * one + (_STEPS - step) * other) / _STEPS
                yield choices._replace(wire_s=mixed, launch_s=none)


def _on_lane(instance: CompressionInstance, lane: str) -> npt.NDArray[np.float64]:
    """(n, m) seconds of each option on a lane; infinite where there is no option."""
    found = np.full((len(instance.menus), instance.most_options), np.inf)
    for place, menu in enumerate(instance.menus):
        for choice, option in enumerate(menu):
            stages = [stage for stage in option.stages if stage.lane == lane]
            found[place, choice] = sum(each.busy_s + (0 if instance.fusion else each.launch_s) for each in stages)
    return found[[gradient.menu for gradient in instance.gradients]]


def longest_way_s(instance: CompressionInstance) -> float:
    """Seconds at least: every gradient by itself, with the least encoding before it."""
    best, before = 0.0, 0.0
    for gradient in instance.gradients:
        menu = instance.menus[gradient.menu]
        best = max(best, gradient.ready_s + before + min(option.encode_s + option.occupation_s for option in menu))
        before += min(option.encode_s for option in menu)
    return best


def exact_lane_bound(instance: CompressionInstance) -> Fraction:
    """The largest over the lanes of a closed form with the least of everything, in rational numbers."""
    menus = [
        [(Fraction(option.encode_s), _exactly(instance, option.stages)) for option in menu] for menu in instance.menus
    ]
    best = Fraction(0)
    for lane in instance.lanes:
        both = [min(encode + on.get(lane, Fraction(0)) for encode, on in menu) for menu in menus]
        alone = [min(on.get(lane, Fraction(0)) for _, on in menu) for menu in menus]
        encodes = [min(encode for encode, _ in menu) for menu in menus]
        before = Fraction(0)
        after = sum((alone[each.menu] for each in instance.gradients), Fraction(0))
        for each in instance.gradients:
            after -= alone[each.menu]
            best = max(best, Fraction(each.ready_s) + before + both[each.menu] + after)
            before += encodes[each.menu]
    return best


def _exactly(instance: CompressionInstance, stages: tuple[Stage, ...]) -> dict[str, Fraction]:
    return {
        stage.lane: Fraction(stage.busy_s) + (0 if instance.fusion else Fraction(stage.launch_s)) for stage in stages
    }
