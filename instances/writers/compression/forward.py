"""Orders and parts as tables: for every gradient how it is sent, in how many parts, when it is there and needed."""

from collections.abc import Iterator

from ddlopt.instances.writers.compression.timeline import setting
from ddlopt.instances.writers.layout import Section, label, name, seconds, section, size
from ddlopt.models.compression.forward.instance import ForwardInstance, ForwardPlan
from ddlopt.models.compression.forward.schedule import Piece, sent_by, shown

# Of a number that is not compressed.
_BYTES = 4


def table(instance: ForwardInstance, solution: ForwardPlan) -> Iterator[Section]:
    """Sections of a plan."""
    timeline = instance.timeline
    sent, (pieces, layers) = sent_by(instance, solution.choices), shown(instance, solution)
    there = {piece.place: piece.end_s for piece in pieces}
    rows = []
    for place, gradient in enumerate(timeline.gradients):
        option = timeline.option(place, solution.choices[place])
        rows.append(
            (
                label(place, gradient.name),
                name(option.label),
                setting(option),
                size(_BYTES * gradient.elements),
                solution.parts[place],
                seconds(sent.encoded_s[place]),
                seconds(there[place]),
                seconds(layers[place].start_s),
            )
        )
    columns = ("gradient", "option", "compressor", "before", "parts", "encoded", "there", "needed")
    yield section("Gradients in the order of the backward pass", columns, rows)
    runs = [(label(g, timeline.gradients[g].name), count, seconds(at)) for g, count, at in _runs(pieces)]
    yield section("On the wire, one after the other", ("gradient", "parts", "begins"), runs)


def _runs(pieces: list[Piece]) -> Iterator[tuple[int, int, float]]:
    """Parts of one gradient that follow each other: the gradient, how many, and when the first begins."""
    first = 0
    for at, piece in enumerate(pieces):
        if at + 1 == len(pieces) or pieces[at + 1].place != piece.place:
            yield piece.place, at + 1 - first, pieces[first].start_s
            first = at + 1
