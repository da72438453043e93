"""The closed-form bound of plans on the timeline, and of levels, in rational numbers; that by prices is in floats."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from ddlopt.models.compression.levels.instance import ExponentialCurve, LevelInstance
from ddlopt.models.compression.timeline.instance import CompressionInstance
from ddlopt.models.compression.timeline.lane_bounds import exact_lane_bound


class _Least(NamedTuple):
    """Of a gradient: the least of each of its figures."""

    ready: Fraction
    encode: Fraction
    wire: Fraction
    both: Fraction


def exact_timeline_bound(instance: CompressionInstance) -> Fraction:
    """The larger figures of :func:`~ddlopt.models.compression.timeline.bounds.timeline_bound` that need no prices."""
    menus = [
        [
            (
                Fraction(o.encode_s),
                Fraction(o.wire_s) + Fraction(o.decode_s) + (0 if instance.fusion else Fraction(o.launch_s)),
                Fraction(o.error),
            )
            for o in menu
        ]
        for menu in instance.menus
    ]
    if instance.lanes and instance.goal == "time":
        return exact_lane_bound(instance)
    if instance.goal == "error":
        return sum((min(error for _, _, error in menus[each.menu]) for each in instance.gradients), Fraction(0))
    return _closed_form([_least(each.ready_s, menus[each.menu]) for each in instance.gradients])


def exact_level_bound(instance: LevelInstance) -> Fraction:
    """The same for levels, each of which is an option."""
    found, error = [], Fraction(0)
    for each in instance.gradients:
        curve = each.curve
        options = []
        for level in curve.allowed:
            if isinstance(curve, ExponentialCurve):
                wrong = Fraction(curve.scale) / 4**level
            else:
                wrong = Fraction(dict(zip(curve.levels, curve.errors, strict=True))[level])
            encode = Fraction(each.encode_s) + Fraction(each.encode_s_per_level) * level
            options.append((encode, Fraction(each.launch_s) + Fraction(each.wire_s_per_level) * level, wrong))
        error += min(wrong for _, _, wrong in options)
        found.append(_least(each.ready_s, options))
    return error if instance.goal == "error" else _closed_form(found)


def _least(ready_s: float, options: Sequence[tuple[Fraction, Fraction, Fraction]]) -> _Least:
    encode, wire = min(each[0] for each in options), min(each[1] for each in options)
    return _Least(Fraction(ready_s), encode, wire, min(each[0] + each[1] for each in options))


def _closed_form(gradients: Sequence[_Least]) -> Fraction:
    before, after = Fraction(0), sum((each.wire for each in gradients), Fraction(0))
    best = Fraction(0)
    for each in gradients:
        after -= each.wire
        best = max(best, each.ready + before + each.both + after)
        before += each.encode
    return best
