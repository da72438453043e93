"""The independent check of a plan for a training step, from the problem statement."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ddlopt.models.contracts import Evaluation, Number, Violation
from ddlopt.models.deployment.step.instance import (
    FULL,
    StepBlock,
    StepInstance,
    StepOption,
    StepPlan,
    Way,
)
from ddlopt.models.deployment.step.places import chunk_share, members, stage_chunks
from ddlopt.models.tolerances import let_pass


@dataclass(frozen=True)
class StagePart:
    """What a stage takes: seconds by what takes them, bytes by what fills them.

    Parameters
    ----------
    times : dict
        Of a micro-batch: ``computation``, ``tensor``, ``context``, ``experts``, ``neighbours``; in the end ``copies``
        and ``optimizer``.
    memory : dict
        ``weights``, ``gradients``, ``optimizer``, ``activations``, ``transient``.
    """

    times: dict[str, Number]
    memory: dict[str, Number]

    @property
    def micro_batch_s(self) -> Number:
        """Of a micro-batch."""
        return sum(value for name, value in self.times.items() if name not in ("copies", "optimizer"))

    @property
    def end_s(self) -> Number:
        """After the last one."""
        return self.times["copies"] + self.times["optimizer"]


def evaluate_step(instance: StepInstance, solution: StepPlan, exact: bool = False) -> Evaluation:
    """Time of a step, and what is wrong.

    Parameters
    ----------
    instance : StepInstance
    solution : StepPlan
    exact : bool
        In rational numbers; of memory the same is let pass as in floating point.

    Returns
    -------
    Evaluation
        Without an objective where degrees are none of the instance.
    """
    wrong = list(_degrees(instance, solution))
    if not wrong:
        wrong = list(_ways(instance, solution))
    if wrong:
        return Evaluation(None, tuple(wrong))
    number = Fraction if exact else float
    stages = stage_parts(instance, solution, exact)
    limit = let_pass(number(instance.memory_bytes))
    for place, stage in enumerate(stages):
        used = sum(stage.memory.values())
        if used > limit:
            wrong.append(Violation("memory suffices", f"stage {place}", used, number(instance.memory_bytes)))
    rounds = instance.global_batch // (solution.micro_batch * solution.data)
    longest = max(stage.micro_batch_s for stage in stages)
    share = number(chunk_share(instance.size, solution.pipeline, solution.interleaving))
    ramp = (sum(stage.micro_batch_s for stage in stages) - longest) * share
    end = max(stage.end_s for stage in stages)
    slowest = max(stages, key=lambda stage: stage.micro_batch_s)
    details: dict[str, Number] = {f"{name}_s": rounds * value for name, value in slowest.times.items()}
    last = max(stages, key=lambda stage: stage.end_s)
    details |= {"copies_s": last.times["copies"], "optimizer_s": last.times["optimizer"], "bubble_s": ramp}
    fullest = max(stages, key=lambda stage: sum(stage.memory.values()))
    details |= {f"{name}_bytes": value for name, value in fullest.memory.items()}
    details |= {"memory_bytes": sum(fullest.memory.values()), "devices": solution.devices, "micro_batches": rounds}
    return Evaluation(rounds * longest + ramp + end, tuple(wrong), details)


def _degrees(instance: StepInstance, plan: StepPlan) -> Iterator[Violation]:
    named = ("tensor", "context", "expert", "data", "pipeline", "interleaving", "micro_batch")
    for name in named:
        if getattr(plan, name) < 1:
            yield Violation("degrees are positive", name, getattr(plan, name), 1)
            return
    if plan.devices > instance.devices:
        yield Violation("devices suffice", "all degrees", plan.devices, instance.devices)
    samples = plan.micro_batch * plan.data
    if instance.global_batch % samples:
        yield Violation("micro-batches are whole", "data times micro_batch", samples, instance.global_batch)
        return
    rounds = instance.global_batch // samples
    if plan.interleaving > 1 and (plan.pipeline == 1 or rounds % plan.pipeline):
        yield Violation("interleaved micro-batches come in rounds", "micro-batches", rounds, plan.pipeline)
    if plan.interleaving > instance.interleaving:
        yield Violation("interleaving is allowed", "interleaving", plan.interleaving, instance.interleaving)
    chunks = plan.pipeline * plan.interleaving
    if chunks > instance.size:
        yield Violation("every chunk has a block", "chunks", chunks, instance.size)
        return
    if not 0 <= plan.recomputed <= -(-instance.size // chunks):
        yield Violation("chunks have the recomputed blocks", "recomputed", plan.recomputed, -(-instance.size // chunks))
    if plan.sharding not in instance.sharding:
        yield Violation("sharding is allowed", "sharding", plan.sharding, instance.sharding[-1])
    if plan.order not in instance.orders:
        yield Violation("the order is allowed", f"order {', '.join(plan.order)}", 0, len(instance.orders))
    copies = plan.tensor * plan.context * plan.data
    if copies % plan.expert:
        yield Violation("the expert degree divides a stage's devices", "expert", plan.expert, copies)


def _ways(instance: StepInstance, plan: StepPlan) -> Iterator[Violation]:
    if plan.expert > 1 and not any(block.experts for block in instance.blocks):
        yield Violation("only experts have an expert degree", "expert", plan.expert, 1)
    asked = (
        f"tensor {plan.tensor}, context {plan.context}, expert {plan.expert}, micro-batches of {plan.micro_batch}, "
        f"{'with' if plan.sequence_parallel else 'without'} sequence parallelism"
    )
    for block in (instance.embedding, instance.head):
        if way_of(block, plan) is None:
            yield Violation("blocks have these degrees", f"block '{block.name}', {asked}", 0, 1)
    needed = [plan.option] + ([FULL] if plan.recomputed else [])
    for block in instance.blocks:
        way = way_of(block, plan)
        if way is None:
            yield Violation("blocks have these degrees", f"block '{block.name}', {asked}", 0, 1)
            continue
        names = [option.name for option in way.options]
        for name in needed:
            if name not in names:
                yield Violation("options are those of the block", f"block '{block.name}', '{name}'", 0, 1)
        if plan.recomputed and plan.option != names[0]:
            yield Violation("recomputed blocks are beside the first option", f"block '{block.name}'", 1, 0)


def way_of(block: StepBlock, plan: StepPlan) -> Way | None:
    """The way of a block at a plan's degrees."""
    expert = plan.expert if block.experts else 1
    key = (plan.tensor, plan.context, expert, plan.micro_batch, plan.sequence_parallel)
    return next((way for way in block.ways if way.key == key), None)


class _Network:
    """Times of messages."""

    def __init__(self, instance: StepInstance, plan: StepPlan, number: Callable[[float], Number]) -> None:
        self.tiers, self.inside, self.number = instance.tiers, members(instance, plan), number

    def _spanned(self, group: str) -> Iterator[tuple[int, Any]]:
        """Tiers that a group uses, each with its members that are together below."""
        below = 1
        for tier, inside in zip(self.tiers, self.inside, strict=True):
            if inside[group] > below:
                yield below, tier
                below = inside[group]

    def ring_s(self, group: str, size: Number, messages: int) -> Number:
        """Bytes that each device of a ring sends."""
        longest, latency = self.number(0), self.number(0)
        for below, tier in self._spanned(group):
            longest = max(longest, size / (below * self.number(tier.bandwidth_bytes_per_s)))
            latency = self.number(tier.latency_s)
        return longest + messages * latency

    def exchange_s(self, degree: int, size: Number, messages: int) -> Number:
        """All-to-all of experts: bytes that each device has, those for itself included."""
        longest, latency = self.number(0), self.number(0)
        for below, tier in self._spanned("expert"):
            out = size * (degree - below) / degree
            longest = max(longest, out / self.number(tier.bandwidth_bytes_per_s))
            latency = self.number(tier.latency_s)
        return longest + messages * latency

    def collective_s(self, group: str, degree: int, size: Number, added: bool) -> Number:
        """All-reduce if ``added``, else one gather or scatter, of a number of bytes in all."""
        longest, latency = self.number(0), self.number(0)
        for below, tier in self._spanned(group):
            sent = size if tier.collective == "switch" else size * (1 + added) * (degree - 1) / degree
            longest = max(longest, sent / (below * self.number(tier.bandwidth_bytes_per_s)))
            latency = self.number(tier.latency_s)
        return longest + latency

    def message_s(self, degree: int, size: Number) -> Number:
        """To the neighbour in the pipeline, over the innermost tier that has all of its stages in a unit."""
        pairs = zip(self.tiers, self.inside, strict=True)
        tier = next(tier for tier, inside in pairs if inside["pipeline"] == degree)
        return size / self.number(tier.bandwidth_bytes_per_s) + self.number(tier.latency_s)


def stage_parts(instance: StepInstance, plan: StepPlan, exact: bool = False) -> list[StagePart]:
    """Times and memory of every stage of a plan whose degrees are some of the instance."""
    number = Fraction if exact else float
    network = _Network(instance, plan, number)
    found = []
    for stage, chunks in enumerate(stage_chunks(instance, plan)):
        used = stage_blocks(instance, plan, stage, chunks)
        times = _times(instance, plan, used, network, number)
        weights = _states(instance, plan, used, number)
        times |= _end(instance, plan, times, used, network, number)
        found.append(StagePart(times, weights | _activations(instance, plan, stage, used, number)))
    return found


@dataclass(frozen=True)
class ChunkPart:
    """What a chunk takes for a micro-batch, exactly; the sum of a stage's chunks is what the stage takes.

    Parameters
    ----------
    forward_s, backward_s : Fraction
        Of what is sent, a half is in each.
    computed_backward_s : Fraction
        The part of ``backward_s`` that is not sending.
    held_bytes, kept_once_bytes : Fraction
        Kept from forward to backward pass, and what an end keeps of one micro-batch however many are in flight.
    """

    forward_s: Fraction
    backward_s: Fraction
    computed_backward_s: Fraction
    held_bytes: Fraction
    kept_once_bytes: Fraction


def chunk_parts(instance: StepInstance, plan: StepPlan) -> list[ChunkPart]:
    """The chunks of a plan whose degrees are some of the instance, in the order in which micro-batches go through."""
    network = _Network(instance, plan, Fraction)
    chunks = [range(0, 0)] * (plan.pipeline * plan.interleaving)
    for stage, own in enumerate(stage_chunks(instance, plan)):
        chunks[stage :: plan.pipeline] = own
    found = []
    for place, chunk in enumerate(chunks):
        stage = place % plan.pipeline
        used = [
            each
            for each in stage_blocks(instance, plan, stage, [chunk])
            if not each[3] or (place == 0 and each[0] is instance.embedding)
            or (place == len(chunks) - 1 and each[0] is instance.head)
        ]  # fmt: skip
        took = _times(instance, plan.changed(interleaving=1), used, network, Fraction)
        times = {what: Fraction(each) for what, each in took.items()}
        computed = times.pop("computation")
        backward = sum((Fraction(option.backward_s) for _, _, option, _ in used), Fraction(0))
        half = sum(times.values(), Fraction(0)) / 2
        held, once = (
            sum((Fraction(option.kept_bytes) for _, _, option, end in used if end is ends), Fraction(0))
            for ends in (False, True)
        )
        found.append(ChunkPart(computed - backward + half, backward + half, backward, held, once))
    return found


Blocks = list[tuple[StepBlock, Way, StepOption, bool]]
"""Blocks of a stage, their ways and options, and whether they are one of the ends."""


def stage_blocks(instance: StepInstance, plan: StepPlan, stage: int, chunks: list[range]) -> Blocks:
    """What a stage has, in the order of its chunks."""
    found: Blocks = []
    ends = ([instance.embedding] if stage == 0 else []) + ([instance.head] if stage == plan.pipeline - 1 else [])
    for block in ends:
        way = way_of(block, plan)
        assert way is not None
        found.append((block, way, way.options[0], True))
    for chunk in chunks:
        for place, number in enumerate(chunk):
            block = instance.blocks[instance.kinds[number]]
            way = way_of(block, plan)
            assert way is not None
            name = FULL if place < plan.recomputed else plan.option
            found.append((block, way, next(option for option in way.options if option.name == name), False))
    return found


def _times(instance: StepInstance, plan: StepPlan, used: Blocks, network: _Network, number: Any) -> dict[str, Number]:
    """Of a micro-batch."""
    times: dict[str, Number] = dict.fromkeys(("computation", "tensor", "context", "experts", "neighbours"), number(0))
    for _, _, option, _ in used:
        times["computation"] += number(option.forward_s) + number(option.backward_s)
        for dimension in ("tensor", "context"):
            size = number(getattr(option, f"{dimension}_bytes"))
            if size:
                times[dimension] += network.ring_s(dimension, size, option.messages)
        if option.expert_bytes:
            times["experts"] += network.exchange_s(plan.expert, number(option.expert_bytes), option.messages)
    if plan.pipeline > 1:
        shared = plan.context * (plan.tensor if plan.sequence_parallel else 1)
        size = number(instance.handed_bytes) * plan.micro_batch / shared
        times["neighbours"] = 2 * plan.interleaving * network.message_s(plan.pipeline, size)
    return times


def parameter_copies(plan: StepPlan) -> tuple[int, int]:
    """Of parameters, and of those of experts."""
    copies = plan.context * plan.data
    return copies, plan.tensor * copies // plan.expert


def stage_parameters(instance: StepInstance, used: Blocks, number: Any) -> tuple[Number, Number]:
    """Of a device: those of which context and data have copies, and those of experts."""
    own = sum((number(way.parameters) for _, way, _, _ in used), number(0))
    ends = [way for block, way, _, end in used if end and block is instance.head]
    if instance.tied and len([end for *_, end in used if end]) > 1:
        own -= sum(number(way.parameters) for way in ends)
    experts = sum((number(way.expert_parameters) for _, way, _, _ in used), number(0))
    return own, experts


def _states(instance: StepInstance, plan: StepPlan, used: Blocks, number: Any) -> dict[str, Number]:
    found: dict[str, Number] = dict.fromkeys(("weights", "gradients", "optimizer"), number(0))
    for count, copies in zip(stage_parameters(instance, used, number), parameter_copies(plan), strict=True):
        for level, name in ((3, "weights"), (2, "gradients"), (1, "optimizer")):
            size = number(getattr(instance, {"weights": "weight", "gradients": "gradient"}.get(name, name) + "_bytes"))
            found[name] += count * size / (copies if plan.sharding >= level else 1)
    return found


def _end(
    instance: StepInstance, plan: StepPlan, times: dict[str, Number], used: Blocks, network: _Network, number: Any
) -> dict[str, Number]:
    """What copies send each other beyond what is hidden, and the optimizer."""
    rounds = instance.global_batch // (plan.micro_batch * plan.data)
    at_end, each_round, updated = number(0), number(0), number(0)
    groups = ("copies", "expert copies")
    for count, copies, group in zip(
        stage_parameters(instance, used, number), parameter_copies(plan), groups, strict=True
    ):
        updated += count / (copies if plan.sharding else 1)
        if copies == 1 or not count:
            continue
        weights, gradients = count * number(instance.weight_bytes), count * number(instance.gradient_bytes)
        gathered = network.collective_s(group, copies, weights, added=False)
        scattered = network.collective_s(group, copies, gradients, added=False)
        match plan.sharding:
            case 0:
                at_end += network.collective_s(group, copies, gradients, added=True)
            case 1:
                at_end += scattered + gathered
            case 2:
                at_end += gathered
                each_round += scattered
            case _:
                each_round += scattered + 2 * gathered
    backward = sum((number(option.backward_s) for _, _, option, _ in used), number(0))
    overlap, nothing = number(instance.overlap), number(0)
    exposed = max(nothing, at_end - overlap * backward)
    exposed += rounds * max(nothing, each_round - overlap * times["computation"])
    return {"copies": exposed, "optimizer": updated * number(instance.optimizer_s)}


def _activations(instance: StepInstance, plan: StepPlan, stage: int, used: Blocks, number: Any) -> dict[str, Number]:
    rounds = instance.global_batch // (plan.micro_batch * plan.data)
    p, v = plan.pipeline, plan.interleaving
    flying = min(rounds, p - stage) if v == 1 else min(rounds * v, 2 * (p - 1 - stage) + (v - 1) * p + 1)
    share = number(chunk_share(instance.size, p, v))
    kept = sum((number(option.kept_bytes) for _, _, option, end in used if not end), number(0)) * flying * share
    kept += sum((number(option.kept_bytes) for _, _, option, end in used if end), number(0))
    transient = max(number(option.transient_bytes) for _, _, option, _ in used)
    if plan.sharding == 3:
        sizes = sorted((number(way.parameters) + number(way.expert_parameters) for _, way, _, _ in used), reverse=True)
        transient += sum(sizes[:2], number(0)) * number(instance.weight_bytes)
    return {"activations": kept, "transient": transient}
