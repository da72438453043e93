"""Training steps of a transformer on a cluster: every way of its blocks, by the cost model."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from ddlopt.instances.workloads.networks.rates import Rates
from ddlopt.instances.workloads.networks.step_costs import BlockCosts, Setting
from ddlopt.instances.workloads.networks.transformers import Transformer
from ddlopt.instances.workloads.precision import Precision
from ddlopt.models.errors import OptionError

_ADAM_PASSES = 2
"""State is read and written."""


@dataclass(frozen=True)
class Menu:
    """Degrees that plans may have.

    Parameters
    ----------
    tensor, context, expert, micro_batch : tuple of int
    sequence_parallel : tuple of bool
        For tensor degrees above 1.
    """

    tensor: tuple[int, ...]
    context: tuple[int, ...] = (1,)
    expert: tuple[int, ...] = (1,)
    micro_batch: tuple[int, ...] = (1, 2, 4, 8)
    sequence_parallel: tuple[bool, ...] = (True,)

    def changed(self, **wanted: Iterable[int] | None) -> "Menu":
        """With lists of one's own in place of some."""
        return replace(self, **{name: tuple(sorted(set(own))) for name, own in wanted.items() if own is not None})  # type: ignore[arg-type]

    def suits(self, sizes: Transformer) -> None:
        """Raise :class:`OptionError` if there is no degree, or one does not divide what it shares."""
        for name in ("tensor", "context", "micro_batch", "sequence_parallel"):
            if not getattr(self, name):
                raise OptionError(f"{name} is []; list at least one, or leave it out")
        for name in ("tensor", "context", "micro_batch"):
            for degree in getattr(self, name):
                if degree < 1:
                    raise OptionError(f"{name} has {degree}; degrees are at least 1")
        fitting = tensor_degrees(sizes, max(64, *self.tensor))
        for degree in self.tensor:
            if degree not in fitting:
                raise OptionError(
                    f"tensor degree {degree} does not divide {sizes.heads} heads ({sizes.key_value_heads} of keys and "
                    f"values), a width of {sizes.width} and hidden vectors of {sizes.hidden}; these do: "
                    f"{', '.join(map(str, fitting))}"
                )
        for degree in self.context:
            if sizes.sequence % degree:
                raise OptionError(f"context degree {degree} does not divide {sizes.sequence} tokens")


def powers(most: int) -> tuple[int, ...]:
    """1, 2, 4 and so on."""
    return tuple(1 << place for place in range(max(1, most).bit_length()))


def tensor_degrees(sizes: Transformer, most: int) -> tuple[int, ...]:
    """Those that divide what is shared; keys' and values' heads are divided by them or divide them."""
    stacks = [sizes] if sizes.encoder is None else [sizes, sizes.encoder]
    whole, keys = {stack.hidden for stack in stacks}, set[int]()
    for stack in stacks:
        for block in stack.blocks():
            for part in stack.parts(block):
                if part == "feed":
                    whole.add(stack.shared_width if stack.has_experts(block) else stack.width)
                elif part == "mixer":
                    whole.add(stack.mixer.cuts if stack.mixer else 1)
                else:
                    whole.add(stack.heads)
                    keys.add(stack.heads_of(block).keys)

    def fits(t: int) -> bool:
        return all(size % t == 0 for size in whole) and all(k % t == 0 or t % k == 0 for k in keys)

    return tuple(t for t in range(1, most + 1) if fits(t))


def menu_of(sizes: Transformer, server: int, devices: int, global_batch: int, contexts: Iterable[int]) -> Menu:
    """What plans are made of: tensor degrees inside a server, powers of two for the rest."""
    experts = tuple(e for e in powers(min(devices, sizes.experts)) if sizes.experts % e == 0) if sizes.experts else (1,)
    return Menu(
        tensor_degrees(sizes, min(server, devices)),
        tuple(contexts),
        experts,
        tuple(b for b in (1, 2, 4, 8, 16) if global_batch % b == 0),
    )


def blocks_of(
    sizes: Transformer, precision: Precision, rates: Rates, menu: Menu, base: Setting | None = None
) -> dict[str, Any]:
    """Fields ``embedding``, ``blocks``, ``places``, ``head`` and ``tied`` of a step instance."""
    settings = list(_settings(menu, base or Setting()))
    plain = [each for each in settings if each.expert == 1]
    stacks = [sizes] if sizes.encoder is None else [sizes.encoder, sizes]
    found: dict[Any, dict[str, Any]] = {}
    places = []
    for stack in stacks:
        for block in stack.blocks():
            kind = _kind(stack, block)
            if kind not in found:
                experts = stack.has_experts(block)
                used = [each for each in settings if each.sequence_parallel or each.tensor == 1] if experts else plain
                ways = [BlockCosts(stack, each, rates, precision).way(block) for each in used]
                found[kind] = {"name": block, "count": 0, "experts": experts, "ways": ways}
            found[kind]["count"] += 1
            places.append(list(found).index(kind))
    ends = [BlockCosts(sizes, each, rates, precision) for each in plain]
    return {
        "embedding": {"name": "embedding", "ways": [each.embedding() for each in ends]},
        "blocks": list(found.values()),
        "places": places if places != sorted(places) else (),
        "head": {"name": "head", "ways": [each.head() for each in ends]},
        "tied": sizes.tied,
    }


def _kind(stack: Transformer, block: str) -> tuple[Any, ...]:
    """The same for blocks that cost the same."""
    layers = [layer for part in stack.parts(block) for layer in stack.layers_of(block, part)]
    shapes = tuple((layer.parameters, layer.flops, layer.outputs) for layer in layers)
    return stack.prefix, stack.parts(block), stack.has_experts(block), shapes


def _settings(menu: Menu, base: Setting) -> Iterator[Setting]:
    for t, c, e, b in product(menu.tensor, menu.context, menu.expert, menu.micro_batch):
        for shared in menu.sequence_parallel if t > 1 else (False,):
            yield replace(base, tensor=t, context=c, expert=e, micro_batch=b, sequence_parallel=shared)


def optimizer_s(precision: Precision, optimizer_bytes: float, rates: Rates) -> float:
    """Of a parameter: its state is read and written, its gradient read, its weight written."""
    moved = _ADAM_PASSES * optimizer_bytes + precision.gradient_bytes + precision.number_bytes
    return moved / (rates.memory_bytes_per_s * rates.memory_shares[0][1])
