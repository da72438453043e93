"""The independent check of plans on the timeline: the two lanes, computation and wire, gradient by gradient."""

from collections.abc import Sequence
from fractions import Fraction

from ddlopt.models.compression.lanes import Message, NumberType, broken_budgets, details_of
from ddlopt.models.compression.timeline.instance import CompressionInstance, CompressionPlan, Option
from ddlopt.models.contracts import Evaluation, Number, Violation


def evaluate_timeline(instance: CompressionInstance, solution: CompressionPlan, exact: bool = False) -> Evaluation:
    """Objective of a plan and every constraint that it violates.

    Returns
    -------
    Evaluation
        Details: ``time_s``, ``error``, ``backward_s`` (when the delayed backward pass ends), ``encode_s`` (by which it
        is delayed), ``wire_busy_s``, ``exposed_s`` (after the backward pass), ``messages`` and
        ``compressed_gradients``. With lanes ``LANE_busy_s`` of each in place of ``wire_busy_s``.
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
    details = details_of(sent, error, encode, backward) | {"compressed_gradients": compressed}
    if instance.lanes:
        del details["wire_busy_s"]
        for lane in instance.lanes:
            parts = [end - start for each in sent for name, start, end in each.lanes if name == lane]
            details[f"{lane}_busy_s"] = sum(parts, number(0))
    violations += broken_budgets(instance.error_budget, instance.time_budget_s, details["time_s"], error, number)
    return Evaluation(details["time_s" if instance.goal == "time" else "error"], tuple(violations), details)


def messages(instance: CompressionInstance, solution: CompressionPlan, number: NumberType = float) -> list[Message]:
    """The timeline of a plan that makes sense."""
    sent: list[Message] = []
    encode, wire, first = number(0), number(0), 0
    free: dict[str, Number] = {lane: number(0) for lane in instance.lanes}
    for size in solution.buckets or (1,) * len(instance.gradients):
        last = first + size - 1
        options = [instance.option(i, solution.choices[i]) for i in range(first, last + 1)]
        encode += sum((number(option.encode_s) for option in options), number(0))
        encoded = number(instance.gradients[last].ready_s) + encode
        if instance.lanes:
            sent.append(_through_lanes(first, last, encoded, options, free, number))
        else:
            start = max(wire, encoded)
            lasting = sum((number(option.wire_s) + number(option.decode_s) for option in options), number(0))
            wire = start + lasting + max(number(option.launch_s) for option in options)
            sent.append(Message(first, last, encoded, start, wire))
        first = last + 1
    return sent


def _through_lanes(
    first: int, last: int, encoded: Number, options: list[Option], free: dict[str, Number], number: NumberType
) -> Message:
    """A message on its way; ``free`` is when each lane is done with those before it, and is brought up to date."""
    at, passed = encoded, []
    for lane in free:
        stages = [stage for option in options for stage in option.stages if stage.lane == lane]
        if stages:
            start = max(at, free[lane])
            lasting = sum((number(stage.busy_s) for stage in stages), number(0))
            at = free[lane] = start + lasting + max(number(stage.launch_s) for stage in stages)
            passed.append((lane, start, at))
    return Message(first, last, encoded, passed[0][1] if passed else encoded, at, tuple(passed))


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
