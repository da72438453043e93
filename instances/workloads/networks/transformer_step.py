"""The training step of a transformer as a graph of operators."""

from ddlopt.instances.workloads.networks.layers import Layer
from ddlopt.instances.workloads.networks.network_graphs import Step
from ddlopt.instances.workloads.networks.training_graph import Tape
from ddlopt.instances.workloads.networks.transformer_parts import Part
from ddlopt.instances.workloads.networks.transformers import Transformer


def transformer_step(sizes: Transformer) -> Step:
    """The training step, for one sample."""
    return _Wiring(sizes).step()


class _Wiring:
    """The layers of a transformer on a tape."""

    def __init__(self, sizes: Transformer, tape: Tape | None = None) -> None:
        self.sizes = sizes
        shared = sizes.tied or sizes.shares_words
        self.tape = Tape([sizes.table_of_words.name] if shared else []) if tape is None else tape
        self.memory: int | None = None
        """Where the encoder's result is."""

    def step(self) -> Step:
        sizes, tape = self.sizes, self.tape
        if sizes.encoder is not None:
            encoding = _Wiring(sizes.encoder, tape)
            self.memory = encoding.stack()
        return self._end(self.stack())

    def stack(self) -> int:
        sizes, tape = self.sizes, self.tape
        inner = self._embedding()
        if sizes.embedding_norm or not sizes.norm_first:
            inner = tape.normalisation(sizes.norm(f"{sizes.prefix}embedding.norm"), inner)
        for block in sizes.blocks():
            inner = self._block(block, inner)
        return tape.normalisation(sizes.norm(f"{sizes.prefix}norm"), inner) if sizes.norm_first else inner

    def _embedding(self) -> int:
        sizes, tape, prefix = self.sizes, self.tape, self.sizes.prefix
        tokens = self.tokens = tape.data(f"{prefix}tokens", sizes.sequence)
        segments = tape.data(f"{prefix}segments", sizes.sequence) if sizes.segments else tokens
        owners = {"words": sizes.table_of_words} if sizes.shares_words else {}
        rows = [
            tape.lookup(table, segments if name == "segments" else tokens, owners.get(name))
            for name, table in sizes.tables.items()
        ]
        if sizes.stem:
            made = tape.data(f"{prefix}samples", sizes.stem[0].inputs)
            for layer in sizes.stem:
                made = tape.linear(layer, made)
            rows.append(made)
        return tape.addition(f"{prefix}embedding.add", *rows) if len(rows) > 1 else rows[0]

    def _end(self, inner: int) -> Step:
        sizes, tape = self.sizes, self.tape
        if sizes.head_layer in ("pooler", "first"):
            inner = tape.unary("first", inner, sizes.hidden)
        if sizes.head_layer == "pooler":
            inner = tape.unary("pooler.tanh", tape.linear(sizes.pooler(), inner), needs=("output",))
        elif sizes.head_layer not in ("first", "none"):
            if sizes.head_layer == "masked":
                inner = tape.unary("transform.gelu", tape.linear(sizes.transform(), inner), needs=("input",))
                inner = tape.normalisation(sizes.norm("transform.norm"), inner)
            inner = tape.linear(sizes.words(), inner, sizes.table_of_words if sizes.tied else None)
        if sizes.labels:
            inner = tape.linear(sizes.classes(), inner)
        told = sizes.labels or sizes.head_layer == "pooler"
        return tape.loss(inner, tape.data("labels", 1) if told else self.tokens)

    def _block(self, block: str, inner: int) -> int:
        sizes, tape = self.sizes, self.tape
        norms, behind, parts = sizes.norms(block), sizes.added_norms(block), sizes.parts(block)
        if sizes.parallel:
            normed = [tape.normalisation(norm, inner) for norm in norms]
            given = [self._part(block, part, normed[min(place, len(norms) - 1)]) for place, part in enumerate(parts)]
            return tape.addition(f"{block}.add", *given, inner)
        for place, (part, norm) in enumerate(zip(parts, norms, strict=True)):
            if sizes.norm_first:
                made = self._part(block, part, tape.normalisation(norm, inner))
                made = tape.normalisation(behind[place], made) if behind else made
                inner = tape.addition(f"{block}.add.{place}", made, inner)
            else:
                added = tape.addition(f"{block}.norm.{place}.add", self._part(block, part, inner), inner)
                inner = tape.normalisation(norm, added)
        return inner

    def _part(self, block: str, part: Part, source: int) -> int:
        match part:
            case "attention":
                return self._attention(block, source)
            case "cross":
                return self._cross(block, source)
            case "mixer":
                return self._mixer(block, source)
            case "feed":
                return self._fed(block, source)

    def _mixer(self, block: str, source: int) -> int:
        tape, (into, scan, out) = self.tape, self.sizes.mixing(block)
        made = [tape.linear(layer, source) for layer in into]
        inner = tape.concatenation(f"{block}.mixer.inputs", made) if len(made) > 1 else made[0]
        inner = tape.unary(scan.name, inner, scan.outputs, scan.flops, ("input",), scan.parameters)
        return tape.linear(out, inner)

    def _cross(self, block: str, source: int) -> int:
        sizes, tape, memory = self.sizes, self.tape, self.memory
        assert memory is not None
        layers = sizes.projections(block, "cross")
        query, key, value = (
            tape.linear(layer, source if part == "query" else memory) for part, layer in layers.items()
        )
        return self._seen(block, "cross", query, key, value)

    def _attention(self, block: str, source: int) -> int:
        sizes, tape, name = self.sizes, self.tape, f"{block}.attention"
        short = {
            part: tape.normalisation(norm, tape.linear(down, source))
            for part, (down, norm) in sizes.latents(block).items()
        }
        parts = [tape.linear(layer, short.get(part, source)) for part, layer in sizes.projections(block).items()]
        if sizes.fused:
            parts = tape.split(f"{name}.parts", parts[0], ("query", "key", "value"))
        gate = None
        if sizes.output_gate:
            parts[0], gate = tape.split(f"{name}.query.parts", parts[0], ("query", "gate"))
        norms = sizes.head_norms_of(block)
        parts = [
            tape.normalisation(norms[part], place) if part in norms else place
            for part, place in zip(("query", "key", "value"), parts, strict=False)
        ]
        chosen = self._index(block, source, short.get("query", source)) if sizes.indexer else None
        return self._seen(block, "attention", parts[0], parts[1], parts[-1], chosen, gate)

    def _index(self, block: str, source: int, short: int) -> int:
        """Which tokens queries see: the best of weighed products of two layers."""
        tape, layers, name = self.tape, self.sizes.index(block), f"{block}.attention.index"
        query = tape.linear(layers["query"], short)
        key = tape.normalisation(layers["norm"], tape.linear(layers["key"], source))
        weights, products = tape.linear(layers["weights"], source), layers["products"]
        pairs = self.sizes.sequence**2
        scores = tape.product(f"{name}.scores", query, key, pairs, products.flops)
        weighed = tape.product(f"{name}.weighed", scores, weights, pairs, 0)
        return tape.unary(f"{name}.chosen", weighed, products.outputs)

    def _seen(
        self,
        block: str,
        kind: Part,
        query: int,
        key: int,
        value: int,
        chosen: int | None = None,
        gate: int | None = None,
    ) -> int:
        """Scores of pairs, and what they see of the values."""
        sizes, tape, name = self.sizes, self.tape, f"{block}.{kind}"
        layer = sizes.products(block, kind)
        pairs = self.tape.operators[chosen].numbers if chosen is not None else sizes.sequence * sizes.seen(kind)
        scores = tape.product(f"{name}.scores", query, key, sizes.heads * pairs, layer.flops // 2)
        if chosen is not None:
            scores = tape.product(f"{name}.chosen", scores, chosen, sizes.heads * pairs, 0)
        weights = tape.unary(f"{name}.softmax", scores, needs=("output",), parameters=layer.parameters)
        seen = tape.product(f"{name}.context", weights, value, layer.outputs, layer.flops // 2)
        if gate is not None:
            opened = tape.unary(f"{name}.gate.sigmoid", gate, needs=("output",))
            seen = tape.product(f"{name}.gated", seen, opened, layer.outputs, 0)
        return tape.linear(sizes.output(block, kind), seen)

    def _fed(self, block: str, source: int) -> int:
        sizes, tape = self.sizes, self.tape
        if not sizes.has_experts(block):
            return self._feed(f"{block}.feed", sizes.feed(f"{block}.feed", sizes.sequence), source)
        scores = tape.linear(sizes.router(block), source)
        weights = tape.unary(f"{block}.router.softmax", scores, needs=("output",))
        around = sizes.around_experts(block)
        read = tape.linear(around[0], source) if around else source
        given = []
        for place, layers in enumerate(sizes.experts_of(block)):
            name = f"{block}.experts.{place}"
            given.append(self._feed(name, layers, tape.unary(f"{name}.tokens", read, layers[0][0].inputs)))
        together = tape.concatenation(f"{block}.experts", given)
        numbers = tape.operators[read].numbers
        found = tape.product(f"{block}.experts.sum", together, weights, numbers, 2 * sizes.chosen * numbers)
        found = tape.linear(around[1], found) if around else found
        shared = sizes.shared(block)
        if shared is None:
            return found
        besides = self._feed(f"{block}.shared", shared, source)
        for gate in sizes.shared_gates(block):
            weight = tape.unary(f"{gate.name}.sigmoid", tape.linear(gate, source), needs=("output",))
            besides = tape.product(f"{block}.shared.weighed", besides, weight, sizes.sequence * sizes.hidden, 0)
        return tape.addition(f"{block}.experts.add", found, besides)

    def _feed(self, name: str, layers: tuple[tuple[Layer, ...], Layer], source: int) -> int:
        tape, (wide, narrow) = self.tape, layers
        if not self.sizes.gated:
            return tape.linear(narrow, tape.unary(f"{name}.gelu", tape.linear(wide[0], source), needs=("input",)))
        gate = tape.unary(f"{name}.gate.silu", tape.linear(wide[0], source), needs=("input",))
        inner = tape.product(f"{name}.gated", gate, tape.linear(wide[1], source), wide[0].outputs, 0)
        return tape.linear(narrow, inner)
