"""The independent check of orders and parts: computation, wire and the next forward pass, part by part."""

from collections import Counter
from fractions import Fraction

from ddlopt.models.compression.forward.instance import ForwardInstance, ForwardPlan
from ddlopt.models.compression.lanes import NumberType, broken_budgets
from ddlopt.models.contracts import Evaluation, Number, Violation


def evaluate_forward(instance: ForwardInstance, solution: ForwardPlan, exact: bool = False) -> Evaluation:
    """Objective of a plan and every constraint that it violates.

    Returns
    -------
    Evaluation
        Details: ``time_s``, ``error``, ``backward_s`` (when the delayed backward pass ends), ``encode_s`` (by which it
        is delayed), ``wire_busy_s``, ``wire_end_s``, ``forward_s`` (of computation), ``waiting_s`` (of the forward
        pass, after the backward pass), ``messages`` and ``compressed_gradients``.
    """
    number: NumberType = Fraction if exact else float
    violations = _nonsense(instance, solution)
    if violations:
        return Evaluation(None, tuple(violations))
    timeline, zero = instance.timeline, number(0)
    options = [timeline.option(i, choice) for i, choice in enumerate(solution.choices)]
    encoded: list[Number] = []
    encode = error = zero
    for gradient, option in zip(timeline.gradients, options, strict=True):
        encode += number(option.encode_s)
        error += number(option.error)
        encoded.append(number(gradient.ready_s) + encode)
    # The plan says the order: times are sums and maxima, and do not jump where a part is ready as the wire is.
    there, wire, busy = [zero] * instance.size, zero, zero
    for place in solution.order:
        option, cut = options[place], solution.parts[place]
        lasts = number(option.launch_s) + (number(option.wire_s) + number(option.decode_s)) / cut
        wire = there[place] = max(wire, encoded[place]) + lasts
        busy += lasts
    time = zero
    for place in reversed(range(instance.size)):
        time = max(time, there[place]) + number(instance.forward_s[place])
    forward = sum((number(each) for each in instance.forward_s), zero)
    details = {
        "time_s": time,
        "error": error,
        "backward_s": encoded[-1],
        "encode_s": encode,
        "wire_busy_s": busy,
        "wire_end_s": wire,
        "forward_s": forward,
        "waiting_s": time - forward - encoded[-1],
        "messages": len(solution.order),
        "compressed_gradients": sum(option.compressor != "none" for option in options),
    }
    broken = broken_budgets(timeline.error_budget, None, time, error, number)
    return Evaluation(time, tuple(broken), details)


def _nonsense(instance: ForwardInstance, solution: ForwardPlan) -> list[Violation]:
    count = instance.size
    for kind, field, given in (
        ("every_gradient_has_an_option", "choices", len(solution.choices)),
        ("every_gradient_has_parts", "parts", len(solution.parts)),
    ):
        if given != count:
            return [Violation(kind, field, given, count)]
    wrong = []
    sent = Counter(solution.order)
    for place, gradient in enumerate(instance.timeline.gradients):
        where = f"gradient {place} '{gradient.name}'"
        offered, choice = len(instance.timeline.menus[gradient.menu]), solution.choices[place]
        if not 0 <= choice < offered:
            wrong.append(Violation("option_exists", where, choice, offered))
        if solution.parts[place] not in instance.parts:
            wrong.append(Violation("number_of_parts_is_allowed", where, solution.parts[place], instance.parts[-1]))
        if sent[place] != solution.parts[place]:
            wrong.append(Violation("every_part_is_sent_once", where, sent[place], solution.parts[place]))
    for place in sorted(set(sent) - set(range(count))):
        wrong.append(Violation("gradient_exists", "order", place, count))
    return wrong
