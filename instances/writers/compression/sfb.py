"""Selections of sufficient factors as tables: operators that every replica computes, and what that sends."""

from collections.abc import Iterator

from ddlopt.instances.writers.layout import Section, label, listed, seconds, section, size
from ddlopt.models.compression.sfb.instance import SfbInstance, SfbSelection


def table(instance: SfbInstance, solution: SfbSelection) -> Iterator[Section]:
    """Sections of a selection."""
    chosen, operators = set(solution.duplicated), instance.operators
    rows = []
    for place, operator in enumerate(operators):
        if operator.gradient_bytes or place in chosen:
            sent = 0.0 if place in chosen else operator.gradient_bytes
            how = "every replica computes it" if place in chosen else "all-reduce"
            cost = instance.extra_s[place] if place in chosen else instance.sync_s[place]
            rows.append((label(place, operator.name), how, size(operator.gradient_bytes), size(sent), seconds(cost)))
    columns = ("operator", "how", "gradient before", "all-reduced after", "takes")
    yield section("Operators with gradients, and what is duplicated", columns, rows)
    fetched = []
    for place, tensor in enumerate(instance.tensors):
        readers = sorted(chosen & set(tensor.consumers))
        if readers and tensor.producer not in chosen:
            producer = label(tensor.producer, operators[tensor.producer].name)
            to = listed(label(each, operators[each].name) for each in readers)
            fetched.append((producer, to, size(tensor.size_bytes), seconds(instance.broadcast_s[place])))
    yield section("Tensors that are broadcast", ("from", "to", "bytes", "once"), fetched)
