"""The independent check of a choice of levels; there is a message for every gradient."""

from fractions import Fraction

from ddlopt.models.compression.lanes import Message, NumberType, broken_budgets, details_of
from ddlopt.models.compression.levels.instance import ExponentialCurve, LevelInstance, LevelPlan, PointCurve
from ddlopt.models.contracts import Evaluation, Number, Violation


def evaluate_levels(instance: LevelInstance, solution: LevelPlan, exact: bool = False) -> Evaluation:
    """Objective of a choice of levels and every constraint that it violates.

    Returns
    -------
    Evaluation
        Details as on the timeline (:func:`~ddlopt.models.compression.timeline.evaluate.evaluate_timeline`), without
        ``compressed_gradients``.
    """
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
    details = details_of(sent, error, encode, number(instance.gradients[-1].ready_s) + encode)
    violations = broken_budgets(instance.error_budget, instance.time_budget_s, wire, error, number)
    return Evaluation(details["time_s" if instance.goal == "time" else "error"], tuple(violations), details)


def _curve_error(curve: PointCurve | ExponentialCurve, level: int, number: NumberType) -> Number:
    if isinstance(curve, ExponentialCurve):
        return number(curve.scale) / number(4**level)
    return number(dict(zip(curve.levels, curve.errors, strict=True))[level])
