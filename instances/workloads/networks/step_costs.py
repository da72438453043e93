"""What blocks of a transformer cost a device in a training step: times, memory and messages, by formulas.

With T = s b / c tokens of a micro-batch (s of a sample, b samples, c devices along the sequence), hidden size h, a
heads, t devices that share a layer, and two bytes a number; forward, and backward where it is not twice that:

=================== ======================= ============================== =====================
operator            operations              bytes moved                    backward
=================== ======================= ============================== =====================
product n × m       2 T n m / t             2 (T n + T m + n m)            twice both
attention, fused    2 s T a d / t, causal   queries, keys, values, output  2.5 times, 2 times
scores, not fused   2 s T a d / t each      2 (inputs + s T a / t)         twice, once
softmax, dropout    5 s T a / t, 1 s T a/t  4 and 5 s T a / t              8 and 1; once
normalisation       9 T h                   4 T h                          21 T h, 8 T h
activation          8 T w / t               4 T w / t; 6 if gated          13 T w / t, 4 or 10
sum, dropout        T h, T h                6 T h, 5 T h                   2, 1; once
branches            –                       –                              2 T h (branches + 1)
sorting for experts k T h / t, twice        4 (k + 1) T h / t, twice       once
=================== ======================= ============================== =====================

(last four of the whole T, or of T / t with sequence parallelism.) These are Calculon's counts (M. Isaev et al., SC
2023), apart from fused attention (T. Dao, 2023). An operator takes its operations over the rate and its bytes over
the bandwidth, the sum or the larger of both; rates depend on sizes as a table says (``rates.py``). Memory is in
:mod:`~ddlopt.instances.workloads.networks.transformer_costs`. Messages of a block, in both passes: 4 all-reduces of 2
T h in a group of t, or as many gathers and scatters (2 of these for experts that no products share); all-to-all of
experts, 4 times 2 k T h / t; keys and values of other parts of the sequence once forward, twice backward.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ddlopt.instances.workloads.networks.layers import Layer
from ddlopt.instances.workloads.networks.rates import Rates, Work
from ddlopt.instances.workloads.networks.transformer_costs import activation_bytes
from ddlopt.instances.workloads.networks.transformer_parts import Part
from ddlopt.instances.workloads.networks.transformers import Transformer
from ddlopt.instances.workloads.precision import Precision


class Operator(NamedTuple):
    """Work of both passes; whether it is made again selectively."""

    forward: Work
    backward: tuple[Work, ...]
    again: bool = False


@dataclass(frozen=True)
class Setting:
    """How a network is run.

    Parameters
    ----------
    tensor, context, expert, micro_batch : int
    sequence_parallel : bool
    fused, dropout : bool
        Attention, and whether there is dropout.
    gathered : {"hidden", "shown", "kept"}
        With sequence parallelism, whether inputs of products are gathered again in the backward pass, behind other
        work or not, or are kept whole.
    scatter_factor : float
        How much longer a gather or a scatter takes than half of an all-reduce.
    collective_work : bool
        Whether collectives within a block also take time of the device.
    """

    tensor: int = 1
    context: int = 1
    expert: int = 1
    micro_batch: int = 1
    sequence_parallel: bool = True
    fused: bool = True
    dropout: bool = False
    gathered: Literal["hidden", "shown", "kept"] = "hidden"
    scatter_factor: float = 1.0
    collective_work: bool = False


@dataclass(frozen=True)
class BlockCosts:
    """The costs of blocks of a transformer in a setting."""

    sizes: Transformer
    setting: Setting
    rates: Rates
    precision: Precision

    @property
    def tokens(self) -> float:
        """Of a device."""
        return self.sizes.sequence * self.setting.micro_batch / self.setting.context

    @property
    def whole(self) -> float:
        """Numbers of a tensor that products do not share."""
        shared = self.setting.tensor if self.setting.sequence_parallel else 1
        return self.tokens * self.sizes.hidden / shared

    def way(self, block: str) -> dict[str, Any]:
        """A block at these degrees, as :class:`~ddlopt.models.deployment.step.instance.Way` has it."""
        own, experts = self._parameters(block)
        return self._key(own, experts) | {"options": list(self._options(block))}

    def embedding(self) -> dict[str, Any]:
        """Tables of words and so on, the words shared by the devices of a group."""
        sizes, its = self.sizes, self.setting
        words = sizes.table_of_words.parameters if sizes.vocabulary else 0
        stacks = [sizes] if sizes.encoder is None else [sizes, sizes.encoder]
        others = -words
        for stack in stacks:
            others += sum(layer.parameters for layer in (*stack.tables.values(), *stack.stem))
            before = stack.embedding_norm or not stack.norm_first
            others += stack.norm("embedding.norm").parameters if before else 0
        others += stacks[1].norm("norm").parameters if len(stacks) > 1 and stacks[1].norm_first else 0
        if sizes.tied:
            # A head on the same stage has no weights of its own, so what else it has is counted here.
            others += sum(layer.parameters for layer in sizes.ends()) + self._last_norm()
        looked = Work(0, 0, 2 * self.precision.number_bytes * self.tokens * sizes.hidden)
        seconds = self.rates.time_s(looked)
        return self._key(words / its.tensor + others) | {"options": [self._end("none", seconds, 2 * seconds, 0.0, 0.0)]}

    def head(self) -> dict[str, Any]:
        """The last normalisation, the layer over all words and its loss, in 32 bits."""
        sizes, its, number = self.sizes, self.setting, self.precision.number_bytes
        layers = sizes.ends()
        logits = self.tokens * max((layer.outputs for layer in layers), default=0) / sizes.sequence / its.tensor
        work = [self._norm(self.whole)]
        work += [self._product(self.tokens, layer.inputs, layer.outputs / its.tensor) for layer in layers]
        work.append(Operator(Work(0, 5 * logits, 8 * logits), (Work(0, 8 * logits, 6 * logits),)))
        forward = sum(self.rates.time_s(each.forward) for each in work)
        backward = sum(self.rates.time_s(part) for each in work for part in each.backward)
        parameters = sum(layer.parameters for layer in layers) / its.tensor + self._last_norm()
        if sizes.tied:
            parameters = sizes.table_of_words.parameters / its.tensor
        kept = 2 * number * self.whole
        return self._key(parameters) | {"options": [self._end("none", forward, backward, kept, 6 * logits)]}

    def _last_norm(self) -> int:
        return self.sizes.norm("norm").parameters if self.sizes.norm_first else 0

    def _end(self, name: str, forward: float, backward: float, kept: float, transient: float) -> dict[str, Any]:
        its = self.setting
        reduced = self.precision.number_bytes * self.tokens * self.sizes.hidden * (its.tensor - 1) / its.tensor
        return {
            "name": name,
            "forward_s": _rounded(forward),
            "backward_s": _rounded(backward),
            "kept_bytes": kept,
            "transient_bytes": transient,
            "tensor_bytes": 2 * reduced,
            "messages": 2,
        }

    def _key(self, parameters: float, experts: float = 0.0) -> dict[str, Any]:
        its = self.setting
        return {
            "tensor": its.tensor,
            "context": its.context,
            "expert": its.expert,
            "micro_batch": its.micro_batch,
            "sequence_parallel": its.sequence_parallel,
            "parameters": parameters,
            "expert_parameters": experts,
        }

    def _options(self, block: str) -> Iterator[dict[str, Any]]:
        operators, its = list(self._operators(block)), self.setting
        forward = sum(self.rates.time_s(each.forward) for each in operators)
        backward = sum(self.rates.time_s(work) for each in operators for work in each.backward)
        again = sum(self.rates.time_s(each.forward) for each in operators if each.again)
        kept = {name: self._kept(block, name == "selective") for name in ("none", "selective")}
        kept["full"] = self.precision.number_bytes * self.whole
        working = self.precision.number_bytes * self.tokens * (self.sizes.hidden + self._widest(block) / its.tensor)
        for name, more in (("none", 0.0), ("selective", again), ("full", forward)):
            count = 2 if name == "full" else 0
            yield {
                "name": name,
                "forward_s": _rounded(forward),
                "backward_s": _rounded(backward + more),
                "kept_bytes": kept[name],
                "transient_bytes": working + (kept["none"] if name == "full" else 0.0),
                "tensor_bytes": self._tensor_bytes(block, name),
                "context_bytes": self._context_bytes(block, name),
                "expert_bytes": self._expert_bytes(block) * (4 + count),
                "messages": 4 * (1 + its.sequence_parallel) + count,
            }

    def _kept(self, block: str, selective: bool) -> float:
        its = self.setting
        settled = {"sequence_parallel": its.sequence_parallel, "dropout": its.dropout}
        kept = activation_bytes(
            self.sizes, block, its.micro_batch, its.tensor, self.precision,
            scores=not its.fused and not selective, **settled,
        ) / its.context  # fmt: skip
        if its.gathered == "kept" and its.sequence_parallel:
            kept += len(self.sizes.parts(block)) * self.precision.number_bytes * self.whole * (its.tensor - 1)
        # Fused attention keeps no scores; then it is what normalisations give that is made again.
        normed = len(self.sizes.parts(block)) * self.precision.number_bytes * self.whole
        return kept - (normed if selective and its.fused else 0.0)

    def _widest(self, block: str) -> float:
        """Numbers of a token inside a block."""
        sizes, parts = self.sizes, self.sizes.parts(block)
        if sizes.has_experts(block):
            return sizes.chosen * (sizes.expert_width or sizes.width) + sizes.shared_width
        if "feed" in parts:
            return sizes.width * (2 if sizes.gated else 1)
        return sizes.heads * sizes.head if "attention" in parts else 2 * sizes.hidden

    def _tensor_bytes(self, block: str, name: str) -> float:
        """An all-reduce of a part forward and one backward, or a gather and a scatter for each."""
        its = self.setting
        if its.tensor == 1:
            return 0.0
        alone = self.sizes.has_experts(block) and not self.sizes.shared_width
        halves = len(self.sizes.parts(block)) - alone
        reduced = self.precision.number_bytes * self.tokens * self.sizes.hidden * (its.tensor - 1) / its.tensor
        count = 2.0 * halves * (2 + (name == "full"))
        if its.sequence_parallel:
            count *= its.scatter_factor
            if its.gathered == "shown" and name != "full":
                count += halves * its.scatter_factor
        return count * reduced

    def _context_bytes(self, block: str, name: str) -> float:
        """Keys and values of other parts of the sequence, or the states of a mixer."""
        its, sizes = self.setting, self.sizes
        if its.context == 1 or "attention" not in sizes.parts(block):
            return 0.0
        own = sizes.heads_of(block)
        keys = own.keys * (own.head + sizes.value_head(block)) / min(its.tensor, own.keys)
        if sizes.latent is not None:
            keys = sizes.latent.keys + sizes.latent.turned
        return self.precision.number_bytes * self.tokens * (its.context - 1) * keys * (3 + (name == "full"))

    def _expert_bytes(self, block: str) -> float:
        its, sizes = self.setting, self.sizes
        if its.expert == 1 or not sizes.has_experts(block):
            return 0.0
        given = sizes.latent_experts or sizes.hidden
        return self.precision.number_bytes * sizes.chosen * self.tokens / its.tensor * given

    def _parameters(self, block: str) -> tuple[float, float]:
        """Of a device, without and of experts."""
        sizes, its, own, experts = self.sizes, self.setting, 0.0, 0.0
        own += sum(layer.parameters for layer in (*sizes.norms(block), *sizes.added_norms(block)))
        for part in sizes.parts(block):
            if part == "feed" and sizes.has_experts(block):
                wide, narrow = _expert(sizes, block)
                experts += sum(layer.parameters for layer in (*wide, narrow)) * sizes.experts / its.expert
                whole = (sizes.router(block), *sizes.shared_gates(block), *sizes.around_experts(block))
                own += sum(layer.parameters for layer in whole)
                shared = sizes.shared(block)
                own += sum(layer.parameters for layer in (*shared[0], shared[1])) / its.tensor if shared else 0
            else:
                own += sum(layer.parameters * self._part(block, layer) for layer in sizes.layers_of(block, part))
        return own, experts

    def _part(self, block: str, layer: Layer) -> float:
        """Of a layer that a device has; keys and values of fewer heads than devices are on several."""
        sizes, tensor, words = self.sizes, self.setting.tensor, layer.name.split(".")
        if (words[-1] in ("down", "norm") and words[-3:-2] == ["attention"]) or "index" in words:
            return 1.0
        own = sizes.heads_of(block)
        most = min(tensor, own.keys) if sizes.latent is None else tensor
        if words[-1] == "projections":
            queries, keys = sizes.heads * own.head, 2 * own.keys * own.head
            return (queries / tensor + keys / most) / (queries + keys)
        return 1 / (most if words[-1] in ("key", "value") else tensor)

    def _operators(self, block: str) -> Iterator[Operator]:
        sizes, its, tokens, number = self.sizes, self.setting, self.tokens, self.precision.number_bytes
        for _ in (*sizes.norms(block), *sizes.added_norms(block)):
            yield self._norm(self.whole, again=its.fused)
        for part in sizes.parts(block):
            branches = 0
            if part == "feed":
                yield from self._fed(block)
            elif part == "mixer":
                yield from self._mixed(block)
            else:
                branches = len(sizes.projections(block, part))
                yield from self._attention(block, part)
            yield from self._added(tokens * sizes.hidden, branches)
        if its.collective_work and its.tensor > 1:
            moved, count = 2 * number * tokens * sizes.hidden, 2 if its.sequence_parallel else 1
            added = tokens * sizes.hidden * (its.tensor - 1) / its.tensor
            work = tuple(Work(0, added if place == 0 else 0, moved) for place in range(count))
            yield from (Operator(each, (each,)) for each in work * len(sizes.parts(block)))

    def _added(self, size: float, branches: int) -> Iterator[Operator]:
        """What comes around a part: branches of its input, dropout and the sum."""
        number, whole = self.precision.number_bytes, self.whole
        yield Operator(Work(), (Work(0, 2 * whole, 3 * number * whole),))
        if branches > 1:
            yield Operator(Work(), (Work(0, branches * size, number * size * (branches + 1)),))
        yield Operator(Work(0, whole, 3 * number * whole), (Work(0, 2 * whole, 3 * number * whole),))
        if self.setting.dropout:
            work = Work(0, whole, (2 * number + 1) * whole)
            yield Operator(work, (work,))

    def _dense(self, block: str, layer: Layer, rows: float, narrow: bool = False) -> Operator:
        """A layer whose outputs are shared by devices, or its inputs."""
        part = self._part(block, layer)
        inputs, outputs = layer.inputs, layer.outputs
        return self._product(rows, inputs * (part if narrow else 1), outputs * (1 if narrow else part))

    def _mixed(self, block: str) -> Iterator[Operator]:
        """Dense layers, and the recurrence: its operations are no products."""
        into, scan, out = self.sizes.mixing(block)
        for layer in into:
            yield self._dense(block, layer, self.tokens)
        share = self.tokens / self.sizes.sequence / self.setting.tensor
        moved = self.precision.number_bytes * share * (scan.inputs + scan.outputs)
        work = Work(0, share * scan.flops, moved)
        yield Operator(work, (work, work))
        yield self._dense(block, out, self.tokens, narrow=True)

    def _product(self, rows: float, inputs: float, outputs: float, count: float = 1.0) -> Operator:
        """Rows times a matrix; ``inputs`` and ``outputs`` are those of all tokens of a sample or of one."""
        per = self.sizes.sequence
        n, m = inputs / per, outputs / per
        work = Work(2 * rows * n * m, 0, self.precision.number_bytes * (rows * (n + m) + count * n * m))
        return Operator(work, (work, work))

    def _norm(self, size: float, again: bool = False) -> Operator:
        moved = 2 * self.precision.number_bytes * size
        return Operator(Work(0, 9 * size, moved), (Work(0, 14 * size, moved), Work(0, 7 * size, moved)), again)

    def _attention(self, block: str, kind: Part) -> Iterator[Operator]:
        """Projections, products of queries and keys and of weights and values, and the projection behind them."""
        sizes, its, tokens = self.sizes, self.setting, self.tokens
        parts = its.tensor if its.sequence_parallel else 1
        if kind == "attention":
            for layer in sizes.head_norms_of(block).values():
                yield self._norm(tokens * layer.inputs / sizes.sequence / its.tensor)
            for down, norm in sizes.latents(block).values():
                yield self._product(tokens / parts, down.inputs, down.outputs)
                yield self._norm(tokens * norm.inputs / sizes.sequence / parts)
            for layer in sizes.index(block).values():
                if layer.name.endswith("products"):
                    yield self._products(layer, tokens, its.tensor)
                elif layer.name.endswith("norm"):
                    yield self._norm(tokens * layer.inputs / sizes.sequence / parts)
                else:
                    yield self._dense(block, layer, tokens / parts)
        for layer in sizes.projections(block, kind).values():
            yield self._dense(block, layer, tokens)
        yield from self._scores(block, kind)
        yield self._dense(block, sizes.output(block, kind), tokens, narrow=True)

    def _products(self, layer: Layer, rows: float, parts: float) -> Operator:
        """Products without weights, as far as the mask lets them be."""
        share, number = rows / self.sizes.sequence / parts, self.precision.number_bytes
        work = Work(share * layer.flops / 2, 0, number * share * (layer.inputs + layer.outputs))
        return Operator(work, (work._replace(matrix=2 * work.matrix),))

    def _scores(self, block: str, kind: Part) -> Iterator[Operator]:
        sizes, its, number = self.sizes, self.setting, self.precision.number_bytes
        layer, share = sizes.products(block, kind), self.tokens / sizes.sequence / its.tensor
        flops = share * layer.flops
        moved = number * share * (layer.inputs + layer.outputs)
        if its.fused:
            # Attention to earlier tokens alone, which is what most models have.
            yield Operator(Work(0, 0, moved, flops / 2), (Work(0, 0, 2 * moved, 1.25 * flops),))
            return
        scores = sizes.heads / its.tensor * self.tokens * sizes.seen(kind)
        for place in range(2):
            half = Work(flops / 2, 0, moved / 2 + number * scores)
            yield Operator(half, (half._replace(matrix=flops),), again=place == 0)
        soft = 2 * number * scores
        yield Operator(Work(0, 5 * scores, soft), (Work(0, 8 * scores, soft),), again=True)
        if its.dropout:
            work = Work(0, scores, (2 * number + 1) * scores)
            yield Operator(work, (work,), again=True)

    def _fed(self, block: str) -> Iterator[Operator]:
        sizes, its, tokens = self.sizes, self.setting, self.tokens
        if not sizes.has_experts(block):
            yield from self._feed(sizes.feed(f"{block}.feed", sizes.sequence), tokens, its.tensor)
            return
        own = tokens / its.tensor
        for layer in (sizes.router(block), *sizes.around_experts(block), *sizes.shared_gates(block)):
            yield self._product(own, layer.inputs, layer.outputs)
        # Tokens are put in the order of experts and back.
        size = own * (sizes.latent_experts or sizes.hidden)
        sorting = Work(0, sizes.chosen * size, 2 * self.precision.number_bytes * (1 + sizes.chosen) * size)
        yield Operator(sorting, (sorting,))
        yield Operator(sorting, (sorting,))
        yield from self._feed(_expert(sizes, block), own * sizes.chosen, 1, sizes.experts / its.expert)
        shared = sizes.shared(block)
        if shared is not None:
            yield from self._feed(shared, tokens, its.tensor)

    def _feed(self, layers: Any, rows: float, parts: int, count: float = 1.0) -> Iterator[Operator]:
        """Dense layers with a number of copies of weights, and what is between them."""
        wide, narrow = layers
        number = self.precision.number_bytes
        size = rows * narrow.inputs / self.sizes.sequence / parts
        for layer in wide:
            yield self._product(rows, layer.inputs, layer.outputs / parts, count)
        forward, backward = (3, 5) if len(wide) > 1 else (2, 2)
        yield Operator(Work(0, 8 * size, forward * number * size), (Work(0, 13 * size, backward * number * size),))
        yield self._product(rows, narrow.inputs / parts, narrow.outputs, count)


def _rounded(seconds: float) -> float:
    """To nine digits, which no machine's sums differ in."""
    return float(f"{seconds:.9g}")


def _expert(sizes: Transformer, block: str) -> tuple[tuple[Layer, ...], Layer]:
    return sizes.feed(f"{block}.experts.0", sizes.sequence, sizes.expert_width, sizes.latent_experts)
