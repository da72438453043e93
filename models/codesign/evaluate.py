"""The independent check of a co-design plan, written from the problem statement; it knows no formulation."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ddlopt.models.codesign.instance import CodesignInstance, Layout, Strategy
from ddlopt.models.codesign.solution import CodesignPlan
from ddlopt.models.contracts import Evaluation, Number, Violation
from ddlopt.models.tolerances import let_pass
from ddlopt.models.topology.evaluate import evaluate as evaluate_design
from ddlopt.models.topology.evaluate import link_violations
from ddlopt.models.topology.instance import AllReduceGroup, TopologyInstance

Kind = type[Fraction] | type[float]


def evaluate(instance: CodesignInstance, solution: CodesignPlan, exact: bool = False) -> Evaluation:
    """Iteration time of a plan and every constraint that it violates.

    Parameters
    ----------
    exact : bool
        Calculate times and loads in rational numbers. The bytes of a group or a pair are sums in double precision.

    Returns
    -------
    Evaluation
        Objective in seconds (None where a layer has no strategy or a path leaves the links); details ``compute_s``,
        ``communication_s``, ``max_link_load_bytes``, ``bandwidth_tax`` and ``memory_bytes`` of the fullest server;
        ``error`` where there is a budget for it.

    Raises
    ------
    SolutionError
        If the plan says that it answers another instance.
    """
    solution.belongs_to(instance)
    number: Kind = Fraction if exact else float
    if len(solution.strategies) != len(instance.layers):
        counts = len(solution.strategies), len(instance.layers)
        return Evaluation(None, (Violation("layer_has_a_strategy", "strategies", *counts),))
    chosen: list[Strategy] = []
    for layer, name in zip(instance.layers, solution.strategies, strict=True):
        found = [strategy for strategy in layer.strategies if strategy.name == name]
        if not found:
            where = f"layer '{layer.name}': '{name}'"
            return Evaluation(None, (Violation("strategy_exists", where, 0, len(layer.strategies)),))
        chosen += found
    violations, fullest = _memory(instance, chosen)
    compute = _compute(instance, chosen, number)
    details: dict[str, Number] = {"compute_s": compute, "memory_bytes": fullest}
    if instance.error_budget is not None:
        error = sum((number(strategy.error) for strategy in chosen), number(0))
        details["error"] = error
        if error > let_pass(number(instance.error_budget)):
            violations.append(Violation("error_budget_is_kept", "all layers", error, instance.error_budget))
    job = _job(instance, chosen, float(compute))
    load = number(0)
    if job is None:
        violations += link_violations(_job_of_one_byte(instance), solution.design)
    else:
        judged = evaluate_design(job, solution.design, exact)
        violations += judged.violations
        if judged.objective is None:
            return Evaluation(None, tuple(violations), details)
        details |= judged.details
        load = number(judged.details["max_link_load_bytes"])
    communication = load / number(instance.link_bandwidth_bytes_per_s)
    details["communication_s"] = communication
    time = max(compute, communication) if instance.overlap == "full" else compute + communication
    return Evaluation(time, tuple(violations), details)


def _memory(instance: CodesignInstance, chosen: Sequence[Strategy]) -> tuple[list[Violation], float]:
    taken = [0.0] * instance.servers
    for strategy in chosen:
        for server in instance.layouts[strategy.writes].servers:
            taken[server] += strategy.memory_bytes
    limit = instance.device.memory_bytes
    over = [
        Violation("memory_suffices", f"server {server}", amount, limit)
        for server, amount in enumerate(taken)
        if limit is not None and amount > let_pass(limit)
    ]
    return over, max(taken)


def _compute(instance: CodesignInstance, chosen: Sequence[Strategy], number: Kind) -> Number:
    """Time of the busiest server, or of the longest path through the layers."""
    device = instance.device
    times: list[Number] = []
    for layer, strategy in zip(instance.layers, chosen, strict=True):
        if strategy.measured_s is not None:
            times.append(number(strategy.measured_s) + number(strategy.encoding_s))
            continue
        rate = device.convolution_flops_per_s if layer.convolution else device.flops_per_s
        by_operations = number(strategy.flops) / number(rate)
        by_memory = number(strategy.moved_bytes) / number(device.memory_bytes_per_s)
        times.append(max(by_operations, by_memory) + number(strategy.encoding_s))
    busy: list[Number] = [number(0)] * instance.servers
    for strategy, time in zip(chosen, times, strict=True):
        for server in instance.layouts[strategy.writes].servers:
            busy[server] += time
    finish: dict[int, Number] = {}
    for place in instance.order:
        begin = max((finish[source] for source, target in instance.edges if target == place), default=number(0))
        finish[place] = begin + times[place]
    return max(*busy, *finish.values())


def _job(instance: CodesignInstance, chosen: Sequence[Strategy], compute_s: float) -> TopologyInstance | None:
    """What is to be sent, as a topology problem; None if nothing is."""
    reduced: dict[tuple[int, ...], float] = {}
    traffic = np.zeros((instance.servers, instance.servers))
    for strategy in chosen:
        for reduction in strategy.reductions:
            for group in instance.group_sets[reduction.groups]:
                reduced[group] = reduced.get(group, 0.0) + reduction.bytes
        for source, target, amount in strategy.traffic:
            traffic[source, target] += amount
    for source, target in instance.edges:
        reads = chosen[target].reads
        assert reads is not None  # the instance has seen to it
        forward = _moved(instance.layouts[chosen[source].writes], instance.layouts[reads], instance.servers)
        traffic += instance.layers[source].output_bytes * (forward + forward.T)
    if not reduced and not traffic.any():
        return None
    groups = sorted(reduced, key=lambda members: (-len(members), members))
    return TopologyInstance(
        name=instance.name,
        **instance.fabric,
        allreduce_groups=tuple(AllReduceGroup(members=each, gradient_bytes=reduced[each]) for each in groups),
        traffic_bytes=traffic,
        compute_s=compute_s,
        overlap=instance.overlap,
    )


def _job_of_one_byte(instance: CodesignInstance) -> TopologyInstance:
    """A job on the same servers, for a plan that sends nothing: its links are judged all the same."""
    traffic = np.zeros((instance.servers, instance.servers))
    traffic[0, 1] = 1
    return TopologyInstance(name=instance.name, **instance.fabric, traffic_bytes=traffic)


def _moved(written: Layout, read: Layout, servers: int) -> npt.NDArray[np.float64]:
    """(n, n) parts of an activation by the server that wrote them and the one that reads them; none stays.

    Block (i, j) of a layout is the rectangle [i/p, (i+1)/p) × [j/q, (j+1)/q); what moves are its intersections with the
    blocks of the other layout, measured in whole cells of a common grid.
    """
    batch = math.lcm(written.batch_parts, read.batch_parts)
    channels = math.lcm(written.channel_parts, read.channel_parts)
    samples = _common(written.batch_parts, read.batch_parts, batch)
    features = _common(written.channel_parts, read.channel_parts, channels)
    cells = np.kron(samples, features)  # (blocks written, blocks read)
    parts = np.zeros((servers, servers))
    parts[np.ix_(written.servers, read.servers)] = cells / float(batch * channels)
    np.fill_diagonal(parts, 0)
    return parts


def _common(parts: int, others: int, cells: int) -> npt.NDArray[np.int64]:
    """(parts, others) cells that a part of one cut of the axis has in common with a part of the other."""
    starts, ends = np.arange(parts) * (cells // parts), np.arange(1, parts + 1) * (cells // parts)
    first, last = np.arange(others) * (cells // others), np.arange(1, others + 1) * (cells // others)
    common = np.minimum(ends[:, None], last) - np.maximum(starts[:, None], first)
    return np.asarray(np.maximum(0, common))
