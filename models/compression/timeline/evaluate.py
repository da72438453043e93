"""The independent check of plans on the timeline: the two lanes, computation and wire, gradient by gradient."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from ddlopt.models.compression.levels.instance import ExponentialCurve, LevelInstance, LevelPlan, PointCurve
from ddlopt.models.compression.timeline.instance import CompressionInstance, CompressionPlan
from ddlopt.models.contracts import Evaluation, Number, Violation

TOLERANCE = 1e-9
"""Relative excess over a budget that counts as rounding."""

NumberType = type[Fraction] | type[float]


class Message(NamedTuple):
    """What is sent at once: gradients ``first .. last``, ready on the computation's lane, then on the wire.

    ``encoded_s``: when the last of them is encoded. ``start_s``, ``end_s``: when the wire is theirs.
    """

    first: int
    last: int
    encoded_s: Number
    start_s: Number
    end_s: Number


def evaluate_timeline(instance: CompressionInstance, solution: CompressionPlan, exact: bool = False) -> Evaluation:
    """Objective of a plan and every constraint that it violates.

    Returns
    -------
    Evaluation
        Details: ``time_s``, ``error``, ``backward_s`` (when the delayed backward pass ends), ``encode_s`` (by which it
        is delayed), ``wire_busy_s``, ``exposed_s`` (after the backward pass), ``messages`` and
        ``compressed_gradients``.
    """
    number: NumberType = Fraction if exact else float
    count = len(instance.gradients)
    violations = _nonsense(instance, solution)
    if violations:
        return Evaluation(None, tuple(violations))
    sizes = solution.buckets or (1,) * count
    violations += _wrong_buckets(instance, solution, sizes)
    sent = messages(instance, solution, number)
    options = [instance.option(i, choice) for i, choice in enumerate(solution.choices)]
    error = sum((number(option.error) for option in options), number(0))
    encode = sum((number(option.encode_s) for option in options), number(0))
    backward = number(instance.gradients[-1].ready_s) + encode
    compressed = sum(option.compressor != "none" for option in options)
    details = _details(sent, error, encode, backward) | {"compressed_gradients": compressed}
    violations += _budgets(instance, sent[-1].end_s, error, number)
    return Evaluation(details["time_s" if instance.goal == "time" else "error"], tuple(violations), details)


def evaluate_levels(instance: LevelInstance, solution: LevelPlan, exact: bool = False) -> Evaluation:
    """The same for a choice of levels; there is a message for every gradient."""
    number: NumberType = Fraction if exact else float
    count = len(instance.gradients)
    if len(solution.levels) != count:
        wrong = Violation("every_gradient_has_a_level", "levels", len(solution.levels), count)
        return Evaluation(None, (wrong,))
    pairs = list(zip(instance.gradients, solution.levels, strict=True))
    odd = tuple(
        Violation("level_is_allowed", f"gradient {place} '{gradient.name}'", level, gradient.curve.allowed[-1])
        for place, (gradient, level) in enumerate(pairs)
        if level not in gradient.curve.allowed
    )
    if odd:
        return Evaluation(None, odd)
    encode, wire, error, sent = number(0), number(0), number(0), []
    for place, (gradient, level) in enumerate(pairs):
        encode += number(gradient.encode_s) + number(gradient.encode_s_per_level) * level
        encoded = number(gradient.ready_s) + encode
        start = max(wire, encoded)
        wire = start + number(gradient.launch_s) + number(gradient.wire_s_per_level) * level
        error += _curve_error(gradient.curve, level, number)
        sent.append(Message(place, place, encoded, start, wire))
    details = _details(sent, error, encode, number(instance.gradients[-1].ready_s) + encode)
    violations = _budgets(instance, wire, error, number)
    return Evaluation(details["time_s" if instance.goal == "time" else "error"], tuple(violations), details)


def messages(instance: CompressionInstance, solution: CompressionPlan, number: NumberType = float) -> list[Message]:
    """The timeline of a plan that makes sense."""
    sent: list[Message] = []
    encode, wire, first = number(0), number(0), 0
    for size in solution.buckets or (1,) * len(instance.gradients):
        last = first + size - 1
        options = [instance.option(i, solution.choices[i]) for i in range(first, last + 1)]
        encode += sum((number(option.encode_s) for option in options), number(0))
        encoded = number(instance.gradients[last].ready_s) + encode
        start = max(wire, encoded)
        lasting = sum((number(option.wire_s) + number(option.decode_s) for option in options), number(0))
        wire = start + lasting + max(number(option.launch_s) for option in options)
        sent.append(Message(first, last, encoded, start, wire))
        first = last + 1
    return sent


def _nonsense(instance: CompressionInstance, solution: CompressionPlan) -> list[Violation]:
    count = len(instance.gradients)
    if len(solution.choices) != count:
        return [Violation("every_gradient_has_an_option", "choices", len(solution.choices), count)]
    wrong = []
    for place, (gradient, choice) in enumerate(zip(instance.gradients, solution.choices, strict=True)):
        offered = len(instance.menus[gradient.menu])
        if not 0 <= choice < offered:
            wrong.append(Violation("option_exists", f"gradient {place} '{gradient.name}'", choice, offered))
    if solution.buckets and (min(solution.buckets) < 1 or sum(solution.buckets) != count):
        wrong.append(Violation("buckets_cover_all_gradients", "buckets", sum(solution.buckets), count))
    return wrong


def _wrong_buckets(instance: CompressionInstance, solution: CompressionPlan, sizes: Sequence[int]) -> list[Violation]:
    wrong, first = [], 0
    limit = instance.largest_bucket_bytes
    for number, size in enumerate(sizes):
        places = range(first, first + size)
        first += size
        if size == 1:
            continue
        if not instance.fusion:
            wrong.append(Violation("gradients_may_be_fused", f"bucket {number}", size, 1))
        labels = {instance.option(i, solution.choices[i]).label for i in places}
        if len(labels) > 1:
            wrong.append(Violation("bucket_has_one_kind_of_option", f"bucket {number}", len(labels), 1))
        held = sum(4 * instance.gradients[i].elements for i in places)
        if limit is not None and held > limit:
            wrong.append(Violation("bucket_is_small_enough", f"bucket {number}", held, limit))
    return wrong


def _budgets(
    instance: CompressionInstance | LevelInstance, time: Number, error: Number, number: NumberType
) -> list[Violation]:
    wrong = []
    for kind, used, budget in (
        ("error_budget_is_kept", error, instance.error_budget),
        ("time_budget_is_kept", time, instance.time_budget_s),
    ):
        if budget is not None and used > number(budget) * (1 + number(TOLERANCE)):
            wrong.append(Violation(kind, "all gradients", used, number(budget)))
    return wrong


def _details(sent: Sequence[Message], error: Number, encode: Number, backward: Number) -> dict[str, Number]:
    time = sent[-1].end_s
    return {
        "time_s": time,
        "error": error,
        "backward_s": backward,
        "encode_s": encode,
        "wire_busy_s": sum((message.end_s - message.start_s for message in sent), 0 * time),
        "exposed_s": time - backward,
        "messages": len(sent),
    }


def _curve_error(curve: PointCurve | ExponentialCurve, level: int, number: NumberType) -> Number:
    if isinstance(curve, ExponentialCurve):
        return number(curve.scale) / number(4**level)
    return number(dict(zip(curve.levels, curve.errors, strict=True))[level])
