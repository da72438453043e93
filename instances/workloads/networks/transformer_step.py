"""The training step of a transformer as a graph of operators."""

from ddlopt.instances.workloads.networks.layers import Layer
from ddlopt.instances.workloads.networks.network_graphs import Step
from ddlopt.instances.workloads.networks.training_graph import Tape
from ddlopt.instances.workloads.networks.transformers import Transformer


def transformer_step(sizes: Transformer) -> Step:
    """The training step, for one sample."""
    return _Wiring(sizes).step()


class _Wiring:
    """The layers of a transformer on a tape."""

    def __init__(self, sizes: Transformer) -> None:
        self.sizes = sizes
        self.tape = Tape(["embedding.words"] if sizes.tied else [])

    def step(self) -> Step:
        sizes, tape = self.sizes, self.tape
        tokens = tape.data("tokens", sizes.sequence)
        segments = tape.data("segments", sizes.sequence) if sizes.segments else tokens
        rows = [tape.lookup(table, segments if name == "segments" else tokens) for name, table in sizes.tables.items()]
        inner = tape.addition("embedding.add", *rows) if len(rows) > 1 else rows[0]
        if sizes.embedding_norm or not sizes.norm_first:
            inner = tape.normalisation(sizes.norm("embedding.norm"), inner)
        for block in sizes.blocks():
            inner = self._block(block, inner)
        inner = tape.normalisation(sizes.norm("norm"), inner) if sizes.norm_first else inner
        return self._end(inner, tokens)

    def _end(self, inner: int, tokens: int) -> Step:
        sizes, tape = self.sizes, self.tape
        if sizes.head_layer == "pooler":
            first = tape.unary("first", inner, sizes.hidden)
            inner = tape.unary("pooler.tanh", tape.linear(sizes.pooler(), first), needs=("output",))
        elif sizes.head_layer != "none":
            if sizes.head_layer == "masked":
                inner = tape.unary("transform.gelu", tape.linear(sizes.transform(), inner), needs=("input",))
                inner = tape.normalisation(sizes.norm("transform.norm"), inner)
            inner = tape.linear(sizes.words(), inner, sizes.tables["words"] if sizes.tied else None)
        if sizes.labels:
            inner = tape.linear(sizes.classes(), inner)
        told = sizes.labels or sizes.head_layer == "pooler"
        return tape.loss(inner, tape.data("labels", 1) if told else tokens)

    def _block(self, block: str, inner: int) -> int:
        sizes, tape = self.sizes, self.tape
        norms, behind = sizes.norms(block), sizes.added_norms(block)
        if sizes.parallel:
            normed = [tape.normalisation(norm, inner) for norm in norms]
            attended, fed = self._attention(block, normed[0]), self._fed(block, normed[-1])
            return tape.addition(f"{block}.add", attended, fed, inner)
        first, second = norms
        if sizes.norm_first:
            attended = self._attention(block, tape.normalisation(first, inner))
            attended = tape.normalisation(behind[0], attended) if behind else attended
            inner = tape.addition(f"{block}.add.0", attended, inner)
            fed = self._fed(block, tape.normalisation(second, inner))
            fed = tape.normalisation(behind[1], fed) if behind else fed
            return tape.addition(f"{block}.add.1", fed, inner)
        inner = tape.normalisation(first, tape.addition(f"{block}.norm.0.add", self._attention(block, inner), inner))
        return tape.normalisation(second, tape.addition(f"{block}.norm.1.add", self._fed(block, inner), inner))

    def _attention(self, block: str, source: int) -> int:
        sizes, tape, name = self.sizes, self.tape, f"{block}.attention"
        short = {
            part: tape.normalisation(norm, tape.linear(down, source))
            for part, (down, norm) in sizes.latents(block).items()
        }
        parts = [tape.linear(layer, short.get(part, source)) for part, layer in sizes.projections(block).items()]
        if sizes.fused:
            parts = tape.split(f"{name}.parts", parts[0], ("query", "key", "value"))
        norms = sizes.head_norms_of(block)
        parts = [
            tape.normalisation(norms[part], place) if part in norms else place
            for part, place in zip(("query", "key", "value"), parts, strict=False)
        ]
        query, key, value = parts[0], parts[1], parts[-1]
        layer = sizes.products(block)
        scores = tape.product(f"{name}.scores", query, key, sizes.heads * sizes.sequence**2, layer.flops // 2)
        weights = tape.unary(f"{name}.softmax", scores, needs=("output",), parameters=layer.parameters)
        seen = tape.product(f"{name}.context", weights, value, layer.outputs, layer.flops // 2)
        return tape.linear(sizes.output(block), seen)

    def _fed(self, block: str, source: int) -> int:
        sizes, tape = self.sizes, self.tape
        if not sizes.has_experts(block):
            return self._feed(f"{block}.feed", sizes.feed(f"{block}.feed", sizes.sequence), source)
        scores = tape.linear(sizes.router(block), source)
        weights = tape.unary(f"{block}.router.softmax", scores, needs=("output",))
        given = []
        for place, layers in enumerate(sizes.experts_of(block)):
            name = f"{block}.experts.{place}"
            given.append(self._feed(name, layers, tape.unary(f"{name}.tokens", source, layers[0][0].inputs)))
        together = tape.concatenation(f"{block}.experts", given)
        flops = 2 * sizes.chosen * sizes.sequence * sizes.hidden
        found = tape.product(f"{block}.experts.sum", together, weights, sizes.sequence * sizes.hidden, flops)
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
