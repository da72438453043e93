"""The independent check of aggregating switches in a tree, from the problem statement."""

import math
from collections.abc import Iterable
from fractions import Fraction

from ddlopt.models.aggregation.tree.instance import AggregatingSwitches, TreeInstance
from ddlopt.models.contracts import Evaluation, Number, Violation


def evaluate_tree(instance: TreeInstance, solution: AggregatingSwitches, exact: bool = False) -> Evaluation:
    """Seconds of the goal, and what the answer violates.

    Details are ``utilization_s``, ``congestion_s``, ``aggregating`` (pairs of job and switch) and ``arriving``
    (messages of all jobs at the destination).
    """
    broken = _malformed(instance, solution)
    if broken:
        return Evaluation(None, tuple(broken))
    carried = [messages(instance, job, chosen) for job, chosen in enumerate(solution.switches)]
    busy = [_busy_s(instance, node, [each[node] for each in carried], exact) for node in range(instance.size)]
    utilization, congestion = _sum(busy, exact), max(busy)
    details: dict[str, Number] = {
        "utilization_s": utilization,
        "congestion_s": congestion,
        "aggregating": sum(map(len, solution.switches)),
        "arriving": sum(each[instance.order[0]] for each in carried),
    }
    objective = utilization if instance.goal == "utilization" else congestion
    violations = (*_memory(instance, solution), *_budgets(instance, solution))
    return Evaluation(objective, violations, details)


def messages(instance: TreeInstance, job: int, chosen: Iterable[int]) -> list[int]:
    """Messages of a job on the link above each switch, where ``chosen`` switches aggregate for it."""
    blue, count = set(chosen), list(instance.jobs[job].loads)
    for node in reversed(instance.order):
        if node in blue and count[node]:
            count[node] = 1
        above = instance.parents[node]
        if above is not None:
            count[above] += count[node]
    return count


def _busy_s(instance: TreeInstance, node: int, counts: list[int], exact: bool) -> Number:
    """Seconds for which the link above a switch is busy."""
    if exact:
        sizes = sum((Fraction(job.message_size) * m for job, m in zip(instance.jobs, counts, strict=True)), Fraction(0))
        return Fraction(instance.seconds_per_message[node]) * sizes
    size = math.fsum(job.message_size * m for job, m in zip(instance.jobs, counts, strict=True))
    return instance.seconds_per_message[node] * size


def _sum(values: Iterable[Number], exact: bool) -> Number:
    return sum((Fraction(value) for value in values), Fraction(0)) if exact else math.fsum(values)


def _malformed(instance: TreeInstance, solution: AggregatingSwitches) -> list[Violation]:
    if len(solution.switches) != len(instance.jobs):
        return [Violation("every job has its switches", "switches", len(solution.switches), len(instance.jobs))]
    found = []
    for job, chosen in enumerate(solution.switches):
        seen: set[int] = set()
        for place, node in enumerate(chosen):
            if not 0 <= node < instance.size:
                found.append(Violation("switch exists", f"switches[{job}][{place}]", node, instance.size - 1))
            elif node in seen:
                found.append(Violation("switch is named once", f"switches[{job}][{place}]", node, node))
            seen.add(node)
    return found


def _memory(instance: TreeInstance, solution: AggregatingSwitches) -> list[Violation]:
    if instance.memory is None:
        return []
    used = [0] * instance.size
    for job, chosen in zip(instance.jobs, solution.switches, strict=True):
        for node in chosen:
            used[node] += job.memory
    return [
        Violation("switch has the memory that its jobs need", f"switch {instance.label(node)}", need, room)
        for node, (need, room) in enumerate(zip(used, instance.memory, strict=True))
        if need > room
    ]


def _budgets(instance: TreeInstance, solution: AggregatingSwitches) -> list[Violation]:
    found = []
    for place, (job, chosen) in enumerate(zip(instance.jobs, solution.switches, strict=True)):
        if job.budget is not None and len(chosen) > job.budget:
            where = f"job {place} ('{job.name}')"
            found.append(Violation("job has no more switches than its budget", where, len(chosen), job.budget))
    pairs = sum(map(len, solution.switches))
    if instance.budget is not None and pairs > instance.budget:
        found.append(Violation("no more switches aggregate than the budget", "all jobs", pairs, instance.budget))
    return found
