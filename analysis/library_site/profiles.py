"""How far a method's solutions are from the best known: a performance profile, as a picture within a page."""

import math
from collections.abc import Sequence

from markupsafe import Markup

LEAST, LARGEST = 1e-4, 10.0
"""Losses at the ends of the axis, which is logarithmic: as good as proven optimal, and eleven times as much."""
MARKS = (1e-4, 1e-2, 1e-1, 1.0)
"""Losses that the sentence below a profile names."""
_LEFT, _TOP, _WIDTH, _HEIGHT = 44.0, 8.0, 420.0, 150.0
"""Of the picture's field, in pixels; labels are outside of it."""


def shares(losses: Sequence[float]) -> list[tuple[float, int]]:
    """How many losses are at most each of :data:`MARKS`."""
    return [(mark, sum(loss <= mark for loss in losses)) for mark in MARKS]


def told(losses: Sequence[float]) -> str:
    """The same as a sentence."""
    parts = ", ".join(f"{count} within {mark:.2%}".replace(".00%", "%") for mark, count in shares(losses))
    return f"Of {len(losses)} solutions {parts} of the best known."


def profile(losses: Sequence[float]) -> Markup:
    """The part of instances, upwards, that have at most the loss to the right."""
    path = [f"M{_at(LEAST):.1f},{_TOP + _HEIGHT:.1f}"]
    for rank, loss in enumerate(sorted(losses), start=1):
        path.append(f"H{_at(loss):.1f}V{_TOP + _HEIGHT * (1 - rank / len(losses)):.1f}")
    path.append(f"H{_LEFT + _WIDTH:.1f}")
    labels = [
        f'<text x="{_at(mark):.1f}" y="{_TOP + _HEIGHT + 16:.0f}" text-anchor="middle">{mark:.4g}</text>'
        for mark in (*MARKS, LARGEST)
    ]
    labels += [
        f'<text x="{_LEFT - 6:.0f}" y="{_TOP + _HEIGHT * (1 - part) + 4:.0f}" text-anchor="end">{part:.0%}</text>'
        for part in (0.0, 0.5, 1.0)
    ]
    return Markup(
        f'<svg class="profile" role="img" aria-label="{told(losses)}" width="480" height="190" viewBox="0 0 480 190" '
        f'fill="currentColor" font-size="11"><rect x="{_LEFT:.0f}" y="{_TOP:.0f}" width="{_WIDTH:.0f}" '
        f'height="{_HEIGHT:.0f}" fill="none" stroke="currentColor" stroke-opacity="0.3"/>'
        f'<path d="{"".join(path)}" fill="none" stroke="currentColor" stroke-width="2"/>{"".join(labels)}</svg>'
    )


def _at(loss: float) -> float:
    """Where on the axis."""
    part = math.log(max(loss, LEAST) / LEAST) / math.log(LARGEST / LEAST)
    return _LEFT + _WIDTH * min(part, 1.0)
