"""The independent check of a sufficient-factor selection: every operator and tensor looked at once."""

from fractions import Fraction

from ddlopt.models.compression.sfb.instance import SfbInstance, SfbSelection
from ddlopt.models.contracts import Evaluation, Number, Violation
from ddlopt.models.tolerances import let_pass


def evaluate_sfb(instance: SfbInstance, solution: SfbSelection, exact: bool = False) -> Evaluation:
    """Objective of a selection and every constraint that it violates.

    Returns
    -------
    Evaluation
        Details: ``duplicated_operators``, ``extra_compute_s``, ``allreduce_s``, ``broadcast_s``, ``penalty_s``
        (together the objective), ``data_parallel_s`` (what it costs to duplicate nothing) and
        ``duplicated_memory_bytes``.
    """
    number: type[Fraction] | type[float] = Fraction if exact else float
    count = len(instance.operators)
    chosen = set(solution.duplicated)
    violations = [
        Violation("operator_exists", f"duplicated: {node}", node, count) for node in chosen if not 0 <= node < count
    ]
    if len(chosen) < len(solution.duplicated):
        violations.append(Violation("operator_is_named_once", "duplicated", len(solution.duplicated), len(chosen)))
    if violations:
        return Evaluation(None, tuple(violations))
    for node in sorted(chosen):
        operator = instance.operators[node]
        if not operator.can_duplicate or operator.replicas < 2:
            violations.append(Violation("operator_can_be_duplicated", f"operator {node} '{operator.name}'", 1, 0))

    extra, memory = number(0), number(0)
    for node in chosen:
        extra += _extra(instance, node, number)
        memory += number(instance.operators[node].memory_bytes)
    reduced = [_allreduce(instance, node, number) for node in range(count)]
    paid = sum((each for node, each in enumerate(reduced) if node not in chosen), number(0))
    broadcast = _broadcasts(instance, chosen, number)
    penalty = len(chosen) * number(instance.duplication_penalty_s)
    for kind, used, budget in (
        ("memory_budget_is_kept", memory, instance.memory_budget_bytes),
        ("compute_budget_is_kept", extra, instance.compute_budget_s),
    ):
        if budget is not None and used > let_pass(number(budget)):
            violations.append(Violation(kind, "duplicated operators", used, number(budget)))
    details: dict[str, Number] = {
        "duplicated_operators": len(chosen),
        "extra_compute_s": extra,
        "allreduce_s": paid,
        "broadcast_s": broadcast,
        "penalty_s": penalty,
        "data_parallel_s": sum(reduced, number(0)),
        "duplicated_memory_bytes": memory,
    }
    return Evaluation(extra + paid + broadcast + penalty, tuple(violations), details)


def _extra(instance: SfbInstance, node: int, number: type[Fraction] | type[float]) -> Number:
    """What duplicating an operator adds: every replica does the whole batch in place of its part."""
    operator = instance.operators[node]
    on_all_devices = number(operator.time_s) * (operator.replicas - 1)
    return on_all_devices / operator.replicas if instance.cost_model == "per_link" else on_all_devices


def _allreduce(instance: SfbInstance, node: int, number: type[Fraction] | type[float]) -> Number:
    """A ring all-reduce sends a gradient almost twice over every link."""
    operator = instance.operators[node]
    size, replicas = number(operator.gradient_bytes), operator.replicas
    on_a_link = 2 * (replicas - 1) * size / replicas / number(operator.bandwidth_bytes_per_s)
    match instance.cost_model:
        case "per_link":
            return on_a_link
        case "total_bytes":
            return on_a_link * replicas
        case "tag_code":
            return on_a_link / 4


def _broadcasts(instance: SfbInstance, chosen: set[int], number: type[Fraction] | type[float]) -> Number:
    """Every device gets the parts of a tensor that the others have, wherever it needs the whole."""
    total = number(0)
    for tensor in instance.tensors:
        if tensor.producer in chosen:
            continue
        wanting = sum(consumer in chosen for consumer in tensor.consumers)
        if instance.broadcast == "per_tensor":
            wanting = min(1, wanting)
        if wanting == 0:
            continue
        producer = instance.operators[tensor.producer]
        by_all = number(tensor.size_bytes) * (producer.replicas - 1) / number(producer.bandwidth_bytes_per_s)
        match instance.cost_model:
            case "per_link":
                total += wanting * by_all / producer.replicas
            case "total_bytes":
                total += wanting * by_all
            case "tag_code":
                total += wanting * by_all * producer.replicas / 4
    return total
