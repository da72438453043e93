"""Pictures of plans on the timeline: the lanes of an iteration, with compression and without."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from matplotlib.collections import PatchCollection
from matplotlib.patches import Patch, Rectangle

from ddlopt.analysis.pictures.compression.colours import WIRE
from ddlopt.models.compression import CompressionInstance, CompressionPlan, LevelInstance
from ddlopt.models.compression.timeline.choices import as_timeline, plain_option, plan_of
from ddlopt.models.compression.timeline.evaluate import messages

_COMPUTE, _ENCODE = "#b9d3e8", "#444444"


def _lanes(instance: CompressionInstance) -> tuple[str, ...]:
    """Rows of the picture, from above."""
    return ("backward", "encode", *(instance.lanes or ("wire",)))


class Bar(NamedTuple):
    """A stretch of time in a lane; ``compressor`` is None for computation."""

    lane: str
    start_s: float
    end_s: float
    compressor: str | None = None


def bars(instance: CompressionInstance, plan: CompressionPlan) -> Iterator[Bar]:
    """What happens when, by lane: the backward pass between two gradients, encoding, and messages on the wire."""
    clock = before = 0.0
    options = [instance.option(i, choice) for i, choice in enumerate(plan.choices)]
    for gradient, option in zip(instance.gradients, options, strict=True):
        computed = clock + gradient.ready_s - before
        yield Bar("backward", clock, computed)
        clock, before = computed + option.encode_s, gradient.ready_s
        if option.encode_s > 0:
            yield Bar("encode", computed, clock)
    for message in messages(instance, plan):
        for lane, start_s, end_s in message.lanes or (("wire", message.start_s, message.end_s),):
            yield Bar(lane, float(start_s), float(end_s), options[message.last].compressor)


def plain_plan(instance: CompressionInstance) -> CompressionPlan:
    """Nothing compressed, each gradient by itself; where a menu has no such option, the one with the least error."""
    places = []
    for menu in instance.menus:
        plain = plain_option(menu)
        places.append(min(range(len(menu)), key=lambda o: menu[o].error) if plain is None else plain)
    return CompressionPlan(instance=instance.name, choices=tuple(places[each.menu] for each in instance.gradients))


def draw(axes: Any, instance: CompressionInstance | LevelInstance, solution: Any) -> None:
    """Draw the lanes of the backward pass, of encoding and of the wire: without compression above, as planned below."""
    timeline, plan = as_timeline(instance), plan_of(instance, solution)
    lanes = _lanes(timeline)
    height = len(lanes) + 1.0
    seen: dict[str, None] = {}
    ends = []
    for floor, shown, said in ((height, plain_plan(timeline), "without compression"), (0.0, plan, "as planned")):
        drawn = list(bars(timeline, shown))
        ends.append(max(bar.end_s for bar in drawn))
        seen |= {bar.compressor: None for bar in drawn if bar.compressor is not None}
        shapes = [
            Rectangle(
                (1e3 * bar.start_s, floor + len(lanes) - 1 - lanes.index(bar.lane)),
                1e3 * (bar.end_s - bar.start_s),
                0.8,
            )
            for bar in drawn
        ]
        paints = [_paint(bar) for bar in drawn]
        line = 0.3 if len(drawn) <= 300 else 0.0
        axes.add_collection(PatchCollection(shapes, facecolors=paints, edgecolors="white", linewidths=line))
        axes.plot([1e3 * ends[-1]] * 2, [floor - 0.1, floor + height - 1.1], color="black", linewidth=1)
        # One text: two would be printed over each other where the plan ends early.
        axes.text(0, floor + height - 1.05, f"{said}: {1e3 * ends[-1]:.4g} ms", va="bottom", fontsize=8)
    names = list(reversed(lanes))
    places = [place + 0.4 for place in range(len(lanes))]
    axes.set_yticks([*places, *(height + place for place in places)], names + names, fontsize=7)
    axes.set_xlim(0, 1.02e3 * max(ends))
    axes.set_ylim(-0.2, 2 * height - 0.4)
    axes.set_xlabel("time since the start of the backward pass [ms]", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.legend(
        handles=[Patch(color=WIRE[name], label=name) for name in seen], fontsize=7, ncols=len(seen) or 1,
        loc="upper center", bbox_to_anchor=(0.5, -0.14), frameon=False,
    )  # fmt: skip


def _paint(bar: Bar) -> str:
    if bar.compressor is not None:
        return WIRE[bar.compressor]
    return _ENCODE if bar.lane == "encode" else _COMPUTE
