"""What a plan for a training step sends between servers, as a job whose optical links are to be designed."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from ddlopt.models.deployment.step.evaluate import (
    evaluate_step,
    parameter_copies,
    stage_blocks,
    stage_parameters,
)
from ddlopt.models.deployment.step.instance import StepInstance, StepPlan
from ddlopt.models.deployment.step.places import stage_chunks
from ddlopt.models.errors import OptionError
from ddlopt.models.topology.instance import TopologyInstance

_NO_TIME_BYTES_PER_S = 1e30
"""Of tiers whose messages are not counted."""
_REDUCE_PHASES = 2
"""An all-reduce scatters and gathers."""

Ring = tuple[Any, float]
"""Devices in the order of their ring, and the bytes that each sends in a step."""


def traffic(
    instance: StepInstance,
    plan: StepPlan,
    *,
    tier: str = "",
    degree: int | None = None,
    bandwidth_bytes_per_s: float | None = None,
    optics: Literal["one_way", "duplex"] = "one_way",
    overlap: Literal["none", "full"] = "none",
) -> TopologyInstance:
    """The job of a plan: rings of its groups and messages from server to server, of one step.

    Devices stand one behind another in the plan's order of dimensions, a fixed number to a server. What a ring of
    devices sends (tensor and context parallelism, and copies, whose state may be gathered with every micro-batch) is a
    ring over their servers with as many bytes from each as the plan's evaluation lets leave a server; what experts and
    stages send goes from server to server. Rings over the same servers are one. ``compute_s`` is the step with messages
    inside servers alone.

    Parameters
    ----------
    instance : StepInstance
    plan : StepPlan
        Feasible.
    tier : str
        The tier whose units are the servers; by default the innermost.
    degree : int, optional
        Optical interfaces of a server; by default one a device, as far as there are other servers.
    bandwidth_bytes_per_s : float, optional
        Of an interface; by default all of a server have together what its devices have in the next tier.
    optics : {"one_way", "duplex"}
    overlap : {"none", "full"}
        Of all messages between servers with all else.

    Returns
    -------
    TopologyInstance

    Raises
    ------
    OptionError
        If there is no such tier, or nothing is sent between its units.
    """
    names = [each.name for each in instance.tiers]
    if tier and tier not in names:
        raise OptionError(f"tier is '{tier}'; '{instance.name}' has: {', '.join(names)}")
    level = names.index(tier) if tier else 0
    each = instance.tiers[level].size
    servers = -(-plan.devices // each)
    if servers < 2:
        raise OptionError(
            f"tier is '{names[level]}', whose units have {each} devices; a plan on {plan.devices} sends nothing "
            "between them"
        )
    reduced: dict[tuple[int, ...], float] = defaultdict(float)
    sent = np.zeros((servers, servers))
    for stage in _Stages(instance, plan).each():
        for ring, size in stage.rings():
            members = tuple(sorted(set((ring // each).tolist())))
            if len(members) > 1 and size:
                reduced[members] += size * len(members) / (_REDUCE_PHASES * (len(members) - 1))
        for makers, users, size in stage.messages():
            np.add.at(sent, (makers // each, users // each), size)
    np.fill_diagonal(sent, 0)
    if not reduced and not sent.any():
        raise OptionError(f"the plan for '{instance.name}' sends nothing between units of '{names[level]}'")
    outside = each * instance.tiers[min(level + 1, len(names) - 1)].bandwidth_bytes_per_s
    degree = min(degree or each, servers - 1)
    data = {
        "name": f"{instance.name}-traffic",
        "source": f"what a plan for '{instance.name}' ({described(plan)}) sends between {names[level]}s in a step",
        "servers": servers,
        "degree": degree,
        "link_bandwidth_bytes_per_s": bandwidth_bytes_per_s or outside / degree,
        "optics": optics,
        "overlap": overlap,
        "allreduce_groups": [{"members": own, "gradient_bytes": size} for own, size in sorted(reduced.items())],
        "traffic_bytes": sent.tolist(),
        "compute_s": _inside_s(instance, plan, level),
    }
    return TopologyInstance.from_data(data, instance.name)


def described(plan: StepPlan) -> str:
    """Its degrees, in a line."""
    names = ("tensor", "context", "expert", "data", "pipeline", "interleaving", "micro_batch", "sharding")
    return ", ".join(f"{name.replace('_', '-')} {getattr(plan, name)}" for name in names if getattr(plan, name) > 1)


def _inside_s(instance: StepInstance, plan: StepPlan, level: int) -> float:
    """The step if messages beyond a tier took no time."""
    tiers = [tier.model_dump() for tier in instance.tiers]
    for tier in tiers[level + 1 :]:
        tier |= {"bandwidth_bytes_per_s": _NO_TIME_BYTES_PER_S, "latency_s": 0.0}
    found = evaluate_step(instance.changed(tiers=tiers, slower_inside=True), plan).objective
    assert found is not None
    return float(found)


class _Stages:
    """Devices of a plan, as its order of dimensions numbers them."""

    def __init__(self, instance: StepInstance, plan: StepPlan) -> None:
        self.instance, self.plan = instance, plan
        self.rounds = instance.global_batch // (plan.micro_batch * plan.data)
        axes = tuple(reversed(plan.order))
        grid = np.arange(plan.devices).reshape([getattr(plan, axis) for axis in axes])
        self.axes = tuple(axis for axis in axes if axis != "pipeline")
        self.grid = np.moveaxis(grid, axes.index("pipeline"), 0)

    def each(self) -> Iterator["_Stage"]:
        """Of the first stage, the second one and so on."""
        for number, chunks in enumerate(stage_chunks(self.instance, self.plan)):
            yield _Stage(self, number, stage_blocks(self.instance, self.plan, number, chunks))


class _Stage:
    """What one stage sends in a step."""

    def __init__(self, all_of_them: _Stages, number: int, blocks: Any) -> None:
        self.plan, self.instance, self.rounds = all_of_them.plan, all_of_them.instance, all_of_them.rounds
        self.number, self.blocks = number, blocks
        self.grid, self.axes = all_of_them.grid, all_of_them.axes
        self.devices = self.grid[number]

    def rings(self) -> Iterator[Ring]:
        """Of tensor and context parallelism, and of copies."""
        for name in ("tensor", "context"):
            sent = self.rounds * sum(getattr(option, f"{name}_bytes") for _, _, option, _ in self.blocks)
            yield from ((ring, sent) for ring in self._groups(name))
        own, experts = stage_parameters(self.instance, self.blocks, float)
        copies, expert_copies = parameter_copies(self.plan)
        yield from ((ring, self._copied(float(own), copies)) for ring in self._groups("context", "data"))
        for ring in self.devices.reshape(-1, self.plan.expert).T:
            yield ring, self._copied(float(experts), expert_copies)

    def _groups(self, *names: str) -> Any:
        """Devices that differ in these dimensions alone, a row a group."""
        places = [self.axes.index(name) for name in self.axes if name in names]
        moved = np.moveaxis(self.devices, places, range(-len(places), 0))
        return moved.reshape(-1, int(np.prod([getattr(self.plan, name) for name in names])))

    def _copied(self, parameters: float, copies: int) -> float:
        """Bytes that a device sends for state that a number of devices has a copy or a part of."""
        weights, gradients = parameters * self.instance.weight_bytes, parameters * self.instance.gradient_bytes
        whole = (
            2 * gradients,
            gradients + weights,
            self.rounds * gradients + weights,
            self.rounds * (gradients + 2 * weights),
        )[self.plan.sharding]
        return whole * (copies - 1) / copies

    def messages(self) -> Iterator[tuple[Any, Any, float]]:
        """Makers, users and bytes of each: of experts, and to the stage behind and back."""
        expert = self.plan.expert
        sent = self.rounds * sum(option.expert_bytes for _, _, option, _ in self.blocks)
        if sent and expert > 1:
            for group in self.devices.reshape(-1, expert):
                yield np.repeat(group, expert), np.tile(group, expert), sent / expert
        last = self.number == self.plan.pipeline - 1
        count = self.plan.interleaving - last
        if self.plan.pipeline > 1 and count:
            shared = self.plan.context * (self.plan.tensor if self.plan.sequence_parallel else 1)
            size = self.rounds * count * self.instance.handed_bytes * self.plan.micro_batch / shared
            behind = self.grid[(self.number + 1) % self.plan.pipeline]
            yield self.devices.ravel(), behind.ravel(), size
            yield behind.ravel(), self.devices.ravel(), size
