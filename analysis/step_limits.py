"""What limits the step of a training job under a solution, what the solution changes, and what it costs."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from ddlopt.instances.writers.layout import rate, seconds, size
from ddlopt.models.catalogue import problem_of
from ddlopt.models.codesign import CodesignInstance, CodesignPlan
from ddlopt.models.codesign.job import job_of
from ddlopt.models.compression import CompressionInstance, CompressionPlan
from ddlopt.models.compression.timeline.evaluate import messages
from ddlopt.models.compression.unlimited_error import ACCEPTED_ERROR
from ddlopt.models.contracts import Instance, Solution
from ddlopt.models.deployment import Deployment, DeploymentInstance
from ddlopt.models.problem import Problem
from ddlopt.models.topology import TopologyDesign, TopologyInstance

# A part of the step below which nobody cares: an assumption.
_LITTLE = 0.01
_SHOWN = 3
"""Kinds of compressors that are told."""


def explained(instance: Instance, solution: Solution) -> list[str]:
    """Lines that tell what limits a step, what the solution changes and what it costs; none for other problems.

    The solution must be feasible.
    """
    for kind, tell in _TELL.items():
        if isinstance(instance, kind):
            return list(tell(instance, solution, problem_of(instance)))
    return []


def _compression(instance: CompressionInstance, plan: CompressionPlan, problem: Problem) -> Iterator[str]:
    found = problem.evaluate(instance, plan).details
    time_s, backward_s, error = (float(found[key]) for key in ("time_s", "backward_s", "error"))
    exposed_s = time_s - backward_s
    if exposed_s <= _LITTLE * time_s:
        yield (
            f"limit: computation; the backward pass with compression takes {_time(backward_s)} of {_time(time_s)}, and "
            "the network keeps up"
        )
    elif instance.lanes:
        busy = {lane: float(found[f"{lane}_busy_s"]) for lane in instance.lanes}
        most = max(busy, key=busy.__getitem__)
        others = "".join(f", {lane} {_time(took_s)}" for lane, took_s in busy.items() if lane != most)
        yield f"limit: lane '{most}', busy for {_time(busy[most])} of {_time(time_s)}{others}"
    else:
        yield _wire(instance, plan, exposed_s, time_s)
    plain = CompressionPlan(
        instance=instance.name, choices=tuple(_uncompressed(instance, place) for place in range(len(plan.choices)))
    )
    plain_s = float(problem.evaluate(instance, plain).details["time_s"])
    options = [instance.option(place, choice) for place, choice in enumerate(plan.choices)]
    kinds = Counter(option.label for option in options if option.compressor != "none")
    told = ", ".join(f"{count} x {label}" for label, count in kinds.most_common(_SHOWN))
    more = " and others" if len(kinds) > _SHOWN else ""
    count = f"{kinds.total()} of {len(options)} gradients are compressed" + (f" ({told}{more})" if told else "")
    yield f"change: {count}; {_time(plain_s)} without compression, {_change(plain_s, time_s)}"
    share = f"error: {error:.3g} of the energy of all gradients is lost"
    if instance.error_budget is not None:
        yield f"{share}, of {instance.error_budget:.3g} allowed"
    elif error > ACCEPTED_ERROR and instance.goal == "time":
        told = f"training may not get over that; set error_budget_part, e.g. to {ACCEPTED_ERROR}"
        yield f"{share}, and nothing limits it: {told}"
    else:
        yield share


def _wire(instance: CompressionInstance, plan: CompressionPlan, exposed_s: float, time_s: float) -> str:
    """From which gradient on the network does not pause, and which takes longest of those."""
    sent = messages(instance, plan)
    first = max(place for place, each in enumerate(sent) if each.start_s == each.encoded_s)
    longest = max(sent[first:], key=lambda each: each.end_s - each.start_s)
    names = [gradient.name for gradient in instance.gradients]
    began, took_s = names[sent[first].first], float(longest.end_s - longest.start_s)
    return (
        f"limit: the network, at work for {_time(exposed_s)} of {_time(time_s)} behind the backward pass, without a "
        f"pause since gradient '{began}'; longest of these takes '{names[longest.first]}', {_time(took_s)}"
    )


def _uncompressed(instance: CompressionInstance, place: int) -> int:
    menu = instance.menus[instance.gradients[place].menu]
    return next((number for number, option in enumerate(menu) if option.compressor == "none"), 0)


def _topology(instance: TopologyInstance, design: TopologyDesign, problem: Problem) -> Iterator[str]:
    found = problem.evaluate(instance, design).details
    communication_s = float(found["communication_s"])
    yield _busiest(instance, design, communication_s)
    yield (
        f"change: {sum(count for *_, count in design.links)} links of {rate(instance.link_bandwidth_bytes_per_s)}, "
        f"{len(design.rings)} rings, {len(design.routes)} pairs with routes; a byte takes "
        f"{float(found['bandwidth_tax']):.3g} hops"
    )


def _busiest(instance: TopologyInstance, design: TopologyDesign, communication_s: float) -> str:
    """Which link is the busiest, and with what."""
    rings: dict[tuple[int, int], float] = defaultdict(float)
    routes: dict[tuple[int, int], float] = defaultdict(float)
    for ring in design.rings:
        group = instance.allreduce_groups[ring.group]
        k = len(group.members)
        for path in ring.paths:
            for link in itertools.pairwise(path):
                rings[link] += ring.share * group.gradient_bytes * 2 * (k - 1) / k
    for route in design.routes:
        for path, part in zip(route.paths, route.fractions, strict=True):
            for link in itertools.pairwise(path):
                routes[link] += part * float(instance.traffic_bytes[route.source, route.target])
    counts = design.link_counts(instance)
    loads = {link: (rings[link] + routes[link]) / counts[link] for link in {*rings, *routes}}
    if not loads:
        return f"limit: computation, {_time(instance.compute_s)}; nothing is sent"
    link = max(sorted(loads), key=loads.__getitem__)
    share = rings[link] / (rings[link] + routes[link])
    parts = instance.compute_s, communication_s
    total_s = max(parts) if instance.overlap == "full" else sum(parts)
    what = "computation" if instance.compute_s >= communication_s else "the network"
    return (
        f"limit: {what}; {_time(instance.compute_s)} of computation and {_time(communication_s)} on the busiest link, "
        f"{link[0]} -> {link[1]} ({_bytes(loads[link])}, {share:.0%} of it all-reduce), of "
        f"{_time(total_s)}"
    )


def _codesign(instance: CodesignInstance, plan: CodesignPlan, problem: Problem) -> Iterator[str]:
    found = problem.evaluate(instance, plan).details
    places = [
        next(place for place, each in enumerate(layer.strategies) if each.name == name)
        for layer, name in zip(instance.layers, plan.strategies, strict=True)
    ]
    job = job_of(instance, places)
    if job is None:
        yield f"limit: computation, {_time(float(found['compute_s']))}; nothing is sent"
    else:
        yield _busiest(job, plan.design, float(found["communication_s"]))
    slowest = max(range(len(places)), key=lambda layer: instance.compute_s(layer, places[layer]))
    kinds = Counter(name.partition("-")[0] for name in plan.strategies)
    told = ", ".join(f"{count} x {kind}" for kind, count in kinds.most_common())
    yield (
        f"change: {told}; longest of all layers takes '{instance.layers[slowest].name}' "
        f"({plan.strategies[slowest]}), {_time(instance.compute_s(slowest, places[slowest]))}"
    )
    limit = instance.device.memory_bytes
    allowed = "" if limit is None else f" of {size(limit)}"
    yield f"memory: {_bytes(float(found['memory_bytes']))}{allowed} on the fullest server"


def _deployment(instance: DeploymentInstance, plan: Deployment, problem: Problem) -> Iterator[str]:
    evaluation = problem.evaluate(instance, plan)
    assert evaluation.objective is not None
    found = {key: float(value) for key, value in evaluation.details.items()}
    names = {"compute_s": "the busiest device", "transfer_s": "the busiest link", "collective_s": "collectives"}
    most = max(names, key=found.__getitem__)
    others = ", ".join(f"{name} {_time(found[key])}" for key, name in names.items() if key != most)
    yield f"limit: {names[most]}, {_time(found[most])} of {_time(float(evaluation.objective))}; {others}"
    yield f"memory: {found['memory_use']:.0%} of what the fullest device has"


_TELL: dict[type[Instance], Callable[[Any, Any, Problem], Iterator[str]]] = {
    CompressionInstance: _compression,
    TopologyInstance: _topology,
    CodesignInstance: _codesign,
    DeploymentInstance: _deployment,
}


def _change(before: float, after: float) -> str:
    """How much of a time is saved."""
    part = 1 - after / before if before else 0.0
    return f"{part:.0%} less with it" if part >= 0 else f"{-part:.0%} more with it"


def _time(value: float) -> str:
    """A time with four digits."""
    return seconds(float(f"{value:.4g}"))


def _bytes(value: float) -> str:
    """Bytes with four digits."""
    return size(float(f"{value:.4g}"))
