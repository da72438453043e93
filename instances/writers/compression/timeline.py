"""Compression plans as tables: for every gradient how it is sent, its bytes before and after, and when."""

from collections.abc import Iterator

from ddlopt.instances.workloads.compression.compressors import Compression
from ddlopt.instances.writers.layout import Section, label, name, number, seconds, section, size
from ddlopt.models.compression.timeline.evaluate import messages
from ddlopt.models.compression.timeline.instance import CompressionInstance, CompressionPlan, Option

# Of a number that is not compressed.
_BYTES = 4


def table(instance: CompressionInstance, solution: CompressionPlan) -> Iterator[Section]:
    """Sections of a plan."""
    sent = messages(instance, solution)
    message_of = {place: index for index, each in enumerate(sent) for place in range(each.first, each.last + 1)}
    rows = []
    for place, gradient in enumerate(instance.gradients):
        option, message = instance.option(place, solution.choices[place]), message_of[place]
        rows.append(
            (
                label(place, gradient.name),
                "x".join(map(str, gradient.shape)) or "1",
                name(option.label),
                setting(option),
                size(_BYTES * gradient.elements),
                bytes_after(option, gradient.shape),
                number(option.error),
                message,
                seconds(float(sent[message].start_s)),
                seconds(float(sent[message].end_s)),
            )
        )
    columns = ("gradient", "shape", "option", "compressor", "before", "after", "error", "message", "sent", "there")
    yield section("Gradients in the order of the backward pass", columns, rows)
    before = sum(_BYTES * each.elements for each in instance.gradients)
    yield section("Altogether", ("gradients", "messages", "before"), [(len(rows), len(sent), size(before))])


def setting(option: Option) -> str:
    """Compressor with its parameter, and where it works."""
    parameter = next((each for each in (option.ratio, option.rank, option.levels) if each is not None), None)
    words = [option.compressor, "" if parameter is None else number(parameter), option.scope, option.device]
    return " ".join(filter(None, words if option.compressor != "none" else words[:1]))


def bytes_after(option: Option, shape: tuple[int, ...]) -> str:
    """What one worker sends of a gradient; a sufficient factor's bytes are those of a row of the layer's input."""
    parameter = next((each for each in (option.ratio, option.rank, option.levels) if each is not None), None)
    sent = size(Compression(option.compressor, parameter).payload_bytes(shape))
    return f"{sent} a row" if option.compressor == "sfb" else sent
