"""Costs of all plans with the same degrees of blocks, stages side by side."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ddlopt.models.deployment.step.instance import (
    FULL,
    Dimension,
    StepBlock,
    StepInstance,
    StepOption,
    StepPlan,
)
from ddlopt.models.deployment.step.places import chunk_share, chunk_sizes, members
from ddlopt.models.tolerances import let_pass


class Shape(NamedTuple):
    """How stages are made: p, v, d."""

    pipeline: int
    interleaving: int
    data: int


class Cost(NamedTuple):
    """Of a plan: seconds, bytes of the fullest stage, and seconds of copies' messages that are not hidden."""

    time_s: float
    memory_bytes: float
    exposed_s: float


class Stages:
    """Blocks by stage and chunk, for a number of stages and of chunks."""

    def __init__(self, instance: StepInstance, pipeline: int, interleaving: int) -> None:
        kinds = instance.kinds
        before = np.zeros((len(kinds) + 1, len(instance.blocks)))
        for place, kind in enumerate(kinds):
            before[place + 1] = before[place]
            before[place + 1, kind] += 1
        sizes = np.array(chunk_sizes(len(kinds), pipeline * interleaving))
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self._before, self._sizes, self._starts = before, sizes, starts
        self.pipeline, self.longest = pipeline, int(sizes.max())
        self.chunk_share = float(chunk_share(len(kinds), pipeline, interleaving))
        self.counts = self._of_stages(before[starts + sizes] - before[starts])

    def _of_stages(self, chunks: Any) -> Any:
        return chunks.reshape(-1, self.pipeline, chunks.shape[1]).sum(axis=0)

    def recomputed(self, number: int) -> Any:
        """(p, kinds) blocks that are computed again if this number of every chunk is."""
        behind = self._starts + np.minimum(self._sizes, number)
        return self._of_stages(self._before[behind] - self._before[self._starts])


class Network:
    """Times of messages for an order of dimensions."""

    def __init__(self, instance: StepInstance, plan: StepPlan) -> None:
        self.instance, self.plan = instance, plan
        self.inside = members(instance, plan)

    @property
    def signature(self) -> tuple[Any, ...]:
        """The same for orders that make no difference."""
        return tuple(tuple(sorted(inside.items())) for inside in self.inside)

    def _used(self, group: str) -> list[tuple[int, Any]]:
        below, found = 1, []
        for tier, inside in zip(self.instance.tiers, self.inside, strict=True):
            if inside[group] > below:
                found.append((below, tier))
                below = inside[group]
        return found

    def ring(self, group: str) -> tuple[float, float]:
        """Seconds of a byte and of a message."""
        used = self._used(group)
        if not used:
            return 0.0, 0.0
        return max(1 / (below * tier.bandwidth_bytes_per_s) for below, tier in used), used[-1][1].latency_s

    def exchange(self) -> tuple[float, float]:
        """The same of experts' bytes."""
        used, degree = self._used("expert"), self.plan.expert
        if not used:
            return 0.0, 0.0
        slowest = max((degree - below) / degree / tier.bandwidth_bytes_per_s for below, tier in used)
        return slowest, used[-1][1].latency_s

    def collective(self, group: str, degree: int, added: bool) -> tuple[float, float]:
        """The same of what an all-reduce, or one gather or scatter, is about."""
        used = self._used(group)
        if not used:
            return 0.0, 0.0
        ring = (1 + added) * (degree - 1) / degree
        slowest = max(
            (1.0 if tier.collective == "switch" else ring) / (below * tier.bandwidth_bytes_per_s)
            for below, tier in used
        )
        return slowest, used[-1][1].latency_s

    def sent(self, table: "_Table") -> Any:
        """Seconds of what options send inside a block."""
        total: Any = 0.0
        for (per_byte, latency), sizes in (
            (self.ring("tensor"), table.tensor), (self.ring("context"), table.context), (self.exchange(), table.expert),
        ):  # fmt: skip
            total = total + sizes * per_byte + (sizes > 0) * (table.messages * latency)
        return total

    def neighbour(self) -> tuple[float, float]:
        """The same of what stages hand on."""
        pairs = zip(self.instance.tiers, self.inside, strict=True)
        tier = next(tier for tier, inside in pairs if inside["pipeline"] == self.plan.pipeline)
        return 1 / tier.bandwidth_bytes_per_s, tier.latency_s


Key = tuple[int, int, int, int, bool]
"""t, c, e, b, and whether the sequence is shared."""


class Costs:
    """Plans with degrees ``key`` whose blocks have the option ``name`` unless they are made again."""

    def __init__(
        self, instance: StepInstance, key: Key, name: str, stages: "dict[tuple[int, int], Stages] | None" = None
    ) -> None:
        self.instance, self.key, self.name = instance, key, name
        self._stages = {} if stages is None else stages
        self.tensor, self.context, self.expert, self.micro_batch, self.shared = key
        blocks = [way_at(block, key) for block in instance.blocks]
        self._ends = [way_at(instance.embedding, key), way_at(instance.head, key)]
        self.known = all((*blocks, *self._ends))
        if not self.known:
            return
        options = [{option.name: option for option in way.options} for way in blocks]
        self.known = all(name in each for each in options)
        first = self.known and all(next(iter(each)) == name for each in options)
        self.can_recompute = first and name != FULL and all(FULL in each for each in options)
        if not self.known:
            return
        again = [each[FULL] for each in options] if self.can_recompute else [each[name] for each in options]
        ends = [way.options[0] for way in self._ends]
        self.table = _Table([*(each[name] for each in options), *again, *ends])
        self.own = np.array([way.parameters for way in (*blocks, *self._ends)])
        self.experts = np.array([way.expert_parameters for way in (*blocks, *self._ends)])
        self._kinds = len(blocks)
        self.counts = np.array([block.count for block in instance.blocks])
        self._mixes: dict[tuple[int, int, int], _Mix] = {}
        self._longest: dict[tuple[int, int], float] = {}
        self._networks: dict[Shape, list[tuple[tuple[Dimension, ...], Network]]] = {}
        self.orderly = self.can_recompute and self.table.first_is_faster_and_fuller(len(blocks))

    @cached_property
    def _least(self) -> tuple[Any, Any]:
        """Below what a micro-batch takes on each kind of block and on the ends, messages on the fastest tier."""
        most, table, kinds = max(tier.bandwidth_bytes_per_s for tier in self.instance.tiers), self.table, self._kinds
        sent = table.tensor * (self.tensor > 1) + table.context * (self.context > 1)
        sent = sent + table.expert * (self.expert - 1) / self.expert
        times = table.computed + sent / most
        return np.minimum(times[:kinds], times[kinds : 2 * kinds]), times[2 * kinds :]

    @cached_property
    def least_s(self) -> float:
        """The same on all stages together."""
        blocks, ends = self._least
        return float(self.counts @ blocks + ends.sum())

    def bound_s(self, shape: Shape) -> float:
        """Below the steps of all plans of a shape."""
        key = shape.pipeline, shape.interleaving
        if key not in self._longest:
            blocks, ends = self._least
            stages = self.stages(*key).counts @ blocks
            stages[0] += ends[0]
            stages[-1] += ends[1]
            self._longest[key] = float(stages.max())
        rounds = self.instance.global_batch // (self.micro_batch * shape.data)
        part = self.stages(*key).chunk_share
        return (rounds - part) * self._longest[key] + self.least_s * part

    def stages(self, pipeline: int, interleaving: int) -> Stages:
        """Blocks by stage."""
        key = pipeline, interleaving
        if key not in self._stages:
            self._stages[key] = Stages(self.instance, pipeline, interleaving)
        return self._stages[key]

    def plan(self, shape: Shape, sharding: int, recomputed: int, order: tuple[Dimension, ...]) -> StepPlan:
        """The plan itself."""
        return StepPlan(
            instance=self.instance.name,
            tensor=self.tensor,
            context=self.context,
            expert=self.expert,
            micro_batch=self.micro_batch,
            sequence_parallel=self.shared,
            option=self.name,
            pipeline=shape.pipeline,
            interleaving=shape.interleaving,
            data=shape.data,
            sharding=sharding,
            recomputed=recomputed,
            order=order,
        )

    def networks(self, shape: Shape) -> list[tuple[tuple[Dimension, ...], Network]]:
        """Orders of dimensions that differ, the instance's first one first."""
        shape = shape._replace(interleaving=1)
        if shape not in self._networks:
            found: dict[Any, tuple[tuple[Dimension, ...], Network]] = {}
            for order in self.instance.orders:
                network = Network(self.instance, self.plan(shape, 0, 0, order))
                found.setdefault(network.signature, (order, network))
            self._networks[shape] = list(found.values())
        return self._networks[shape]

    def _mix(self, shape: Shape, recomputed: int) -> "_Mix":
        """What stages have of each option, and what that sums up to; the same for all sharding and copies."""
        key = shape.pipeline, shape.interleaving, recomputed
        if key not in self._mixes:
            its = self.stages(*key[:2])
            again = its.recomputed(recomputed) if recomputed else np.zeros_like(its.counts)
            ends = np.zeros((shape.pipeline, 2))
            ends[0, 0] = ends[-1, 1] = 1
            self._mixes[key] = _Mix(self, its.counts, np.hstack([its.counts - again, again, ends]))
        return self._mixes[key]

    def memory(self, shape: Shape, sharding: int, recomputed: int) -> float:
        """Of the fullest stage."""
        p, v, d = shape
        mix, instance, place = self._mix(shape, recomputed), self.instance, np.arange(p)
        rounds = instance.global_batch // (self.micro_batch * d)
        ahead = p - place if v == 1 else 2 * (p - 1 - place) + (v - 1) * p + 1
        flying = np.minimum(rounds * v, ahead)
        used = mix.kept * flying * self.stages(p, v).chunk_share + mix.kept_ends + mix.transient
        if sharding == 3:
            used = used + mix.two_largest * instance.weight_bytes
        sizes = ((instance.weight_bytes, 3), (instance.gradient_bytes, 2), (instance.optimizer_bytes, 1))
        for count, copies in zip((mix.own, mix.experts), self.copies(d), strict=True):
            used = used + count * sum(size / (copies if sharding >= level else 1) for size, level in sizes)
        return float(used.max())

    def copies(self, data: int) -> tuple[int, int]:
        """Of parameters, and of those of experts."""
        copies = self.context * data
        return copies, self.tensor * copies // self.expert

    def time(self, shape: Shape, sharding: int, recomputed: int, network: Network) -> tuple[float, float]:
        """Seconds of a step, and of copies' messages that are not hidden."""
        p, v, d = shape
        mix, instance = self._mix(shape, recomputed), self.instance
        rounds = instance.global_batch // (self.micro_batch * d)
        tau = mix.computed + mix.options @ network.sent(self.table)
        if p > 1:
            per_byte, latency = network.neighbour()
            size = instance.handed_bytes * self.micro_batch / (self.context * (self.tensor if self.shared else 1))
            tau = tau + 2 * v * (size * per_byte + latency)
        longest = float(tau.max())
        exposed, updated = self._copied(mix, sharding, rounds, network, d)
        end = float((exposed + updated * instance.optimizer_s).max())
        ramp = (float(tau.sum()) - longest) * self.stages(p, v).chunk_share
        return rounds * longest + ramp + end, float(exposed.max())

    def _copied(self, mix: "_Mix", sharding: int, rounds: int, network: Network, data: int) -> tuple[Any, Any]:
        """Seconds of copies' messages that are not hidden, and parameters that a device updates."""
        instance = self.instance
        at_end, each, updated = 0.0, 0.0, 0.0
        groups = zip((mix.own, mix.experts), self.copies(data), ("copies", "expert copies"), strict=True)
        for count, copies, group in groups:
            updated = updated + count / (copies if sharding else 1)
            if copies == 1:
                continue
            per_byte, latency = network.collective(group, copies, added=sharding == 0)
            latencies = (count > 0) * latency
            gradients = count * (instance.gradient_bytes * per_byte) + latencies
            weights = count * (instance.weight_bytes * per_byte) + latencies
            at_end = at_end + (gradients, gradients + weights, weights, 0)[sharding]
            each = each + (0, 0, gradients, gradients + 2 * weights)[sharding]
        exposed = np.maximum(0, at_end - instance.overlap * mix.backward)
        return exposed + rounds * np.maximum(0, each - instance.overlap * mix.computed), updated


class _Mix:
    """Sums over the options of every stage, (p,) each."""

    def __init__(self, costs: Costs, counts: Any, options: Any) -> None:
        table, ends = costs.table, 2 * counts.shape[1]
        self.options = options
        self.computed, self.backward = options @ table.computed, options @ table.backward
        self.kept = options[:, :ends] @ table.kept[:ends]
        self.kept_ends = options[:, ends:] @ table.kept[ends:]
        self.transient = np.where(options > 0, table.transient, 0).max(axis=1)
        held = np.hstack([counts, options[:, ends:]])
        if costs.instance.tied and len(counts) == 1:
            held[0, -1] = 0
        self.own, self.experts = held @ costs.own, held @ costs.experts
        sizes = np.repeat(costs.own + costs.experts, 2)
        there = np.hstack([np.minimum(counts, 2), options[:, ends:]])
        both = np.stack([there >= 1, there >= 2], axis=2).reshape(len(counts), -1)
        self.two_largest = np.sort(both * sizes, axis=1)[:, -2:].sum(axis=1)


class _Table:
    """Figures of options, one a kind of block."""

    def __init__(self, options: list[StepOption]) -> None:

        def pick(name: str) -> Any:
            return np.array([float(getattr(option, name)) for option in options])

        self.backward, self.computed = pick("backward_s"), pick("forward_s") + pick("backward_s")
        self.kept, self.transient = pick("kept_bytes"), pick("transient_bytes")
        self.tensor, self.context, self.expert = pick("tensor_bytes"), pick("context_bytes"), pick("expert_bytes")
        self.messages = pick("messages")

    def first_is_faster_and_fuller(self, kinds: int) -> bool:
        """Whether the first options take no more of anything than the second, and keep no less."""
        names = ("computed", "tensor", "context", "expert", "messages")
        pairs = [(getattr(self, name)[:kinds], getattr(self, name)[kinds : 2 * kinds]) for name in names]
        pairs.append((self.kept[kinds : 2 * kinds], self.kept[:kinds]))
        return all(bool(np.all(less <= more)) for less, more in pairs)


def way_at(block: StepBlock, key: Key) -> Any:
    """The way of a block at degrees; None if there is none."""
    tensor, context, expert, micro_batch, shared = key
    wanted = (tensor, context, expert if block.experts else 1, micro_batch, shared)
    return next((way for way in block.ways if way.key == wanted), None)


def keys(instance: StepInstance) -> Iterator[Key]:
    """Degrees that all blocks have, on this number of devices, for a batch of this size."""
    with_experts = [block for block in instance.blocks if block.experts]
    source = with_experts[0] if with_experts else instance.blocks[0]
    for way in source.ways:
        fits = way.tensor * way.context <= instance.devices and instance.global_batch % way.micro_batch == 0
        if fits and all(way_at(block, way.key) for block in (instance.embedding, *instance.blocks, instance.head)):
            yield way.key


def limit_bytes(instance: StepInstance) -> float:
    """What the check allows."""
    return let_pass(instance.memory_bytes)
