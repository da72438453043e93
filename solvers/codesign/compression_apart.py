"""Compressors chosen apart from strategies and links: after them, before them, or not at all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ddlopt.models.codesign.formulations.rows.coupling import plan_of
from ddlopt.models.codesign.instance import CodesignInstance, Layer, Strategy
from ddlopt.models.codesign.solution import CodesignPlan
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.tolerances import IMPROVEMENT_TOL
from ddlopt.solvers.codesign.fixed_routes import FixedRoutes
from ddlopt.solvers.codesign.half_rounds import best_on_routes
from ddlopt.solvers.codesign.topoopt.alternating import Alternating
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

When = Literal["last", "first", "never"]
Chosen = Literal["greedy", "exact"]
_PLANE_S = 20.0
"""Seconds that the integer program of compressors may take."""


@dataclass(frozen=True)
class CompressionApart(Heuristic, uses=("seed",)):
    """TopoOpt's alternation, and compressors apart from it.

    ``last``, as Espresso and TAG are used: strategies, links, rings and routes as if there were no compressors; then,
    with the bandwidth that each gradient has on these routes, a compressor for every layer within the error budget.
    ``first``: a compressor for every layer, with the bandwidth of all links of a server, then the rest for what is
    left to send.

    Parameters
    ----------
    compression : {"last", "first", "never"}
    compressors : {"greedy", "exact"}
        Of ``last``: Espresso's greedy, which gives the next compressor to the layer that saves most, here for what it
        loses of the budget, if there is one; or the best ones, by an integer program.

    References
    ----------
    Z. Wang, H. Lin, Y. Zhu, T. S. E. Ng, "Hi-speed DNN training with Espresso: unleashing the full potential of
    gradient compression with near-optimal usage strategies", EuroSys 2023, for the greedy; there for one network, whose
    timeline decides what a gradient saves.
    """

    compression: When = "last"
    compressors: Chosen = "greedy"

    name: ClassVar[str] = "compression-apart"
    covers: ClassVar[type[CodesignInstance]] = CodesignInstance
    kernels: ClassVar[tuple[str, ...]] = Alternating.kernels

    def answer(self, instance: CodesignInstance, seed: int, clock: Clock, start: Any) -> Answer[CodesignPlan]:
        """The plan."""
        narrow = compressed_first(instance) if self.compression == "first" else without_compression(instance)
        found, _ = Alternating().answer(narrow, seed, clock, None)
        plan = plan_of(instance, found.choices(instance), found.design)
        before_s = FixedRoutes.of(instance, plan.design, plan.choices(instance)).time_s(plan.choices(instance))
        if self.compression == "last":
            plan = compressed_last(instance, plan, self.compressors, seed, clock)
        return plan, {"before_s": before_s}


def without_compression(instance: CodesignInstance) -> CodesignInstance:
    """Strategies that lose least of those that differ in their compressors only."""
    layers = [_with(layer, [group[0] for group in _groups(layer)]) for layer in instance.layers]
    return instance.changed(layers=layers)


def compressed_first(instance: CodesignInstance) -> CodesignInstance:
    """A compressor for every layer, by what its usual strategy saves with the bandwidth of all links of a server.

    A layer's place in the order of compressors is that in the menu of its usual strategy; of other strategies the one
    at the same place is taken, or the last.
    """
    rate = instance.degree * instance.link_bandwidth_bytes_per_s
    budget = float("inf") if instance.error_budget is None else instance.error_budget
    taken = [0] * len(instance.layers)
    groups = [_groups(layer) for layer in instance.layers]

    def lost(layer: int, place: int) -> float:
        return max(group[min(place, len(group) - 1)].error for group in groups[layer])

    def saved(layer: int, place: int) -> float:
        one, other = (_sending_s(groups[layer][0][k], rate) for k in (taken[layer], place))
        return one - other

    left = budget - sum(lost(layer, 0) for layer in range(len(taken)))
    while True:
        options = []
        for layer, now in enumerate(taken):
            for place in range(len(groups[layer][0])):
                more, gain = lost(layer, place) - lost(layer, now), saved(layer, place)
                if gain > 0 and more <= left:
                    options.append((_worth(gain, more, instance), gain, -layer, -place))
        if not options:
            break
        _, _, layer, place = max(options)
        left -= lost(-layer, -place) - lost(-layer, taken[-layer])
        taken[-layer] = -place
    layers = [
        _with(layer, [group[min(place, len(group) - 1)] for group in own])
        for layer, own, place in zip(instance.layers, groups, taken, strict=True)
    ]
    return instance.changed(layers=layers)


def compressed_last(
    instance: CodesignInstance, plan: CodesignPlan, compressors: Chosen, seed: int, clock: Clock
) -> CodesignPlan:
    """The plan on its links, rings and routes, with a compressor for every layer; never slower than without."""
    choices = plan.choices(instance)
    groups = [
        next(group for group in _groups(layer) if layer.strategies[a] in group)
        for layer, a in zip(instance.layers, choices, strict=True)
    ]
    narrow = instance.changed(
        layers=[_with(layer, group) for layer, group in zip(instance.layers, groups, strict=True)]
    )
    own = tuple(
        [each.name for each in layer.strategies].index(name)
        for layer, name in zip(narrow.layers, plan.strategies, strict=True)
    )
    routes = FixedRoutes.of(narrow, plan.design, own, seed=seed)
    found = _greedy(routes, own, clock)
    if compressors == "exact":
        found, _ = best_on_routes(routes, found, clock, seed, _PLANE_S)
    named = plan_of(narrow, found, routes.design_for(found))
    return plan_of(instance, named.choices(instance), routes.design_for(found))


def _greedy(routes: FixedRoutes, own: tuple[int, ...], clock: Clock) -> tuple[int, ...]:
    """Compressors one by one, each that which saves most for what it loses."""
    instance, tables, choices = routes.instance, tables_of(routes.instance), own
    best_s = routes.time_s(choices)
    while not clock.expired:
        options = []
        for other, layer in _neighbours(choices, tables.sizes):
            if not tables.fits(other):
                continue
            time_s = routes.time_s(other)
            more = float(tables.errors[layer][other[layer]] - tables.errors[layer][choices[layer]])
            if time_s < best_s * (1 - IMPROVEMENT_TOL):
                options.append((_worth(best_s - time_s, more, instance), -time_s, other))
        if not options:
            return choices
        _, time_s, choices = max(options)
        best_s = -time_s
    return choices


def _neighbours(choices: Sequence[int], sizes: Sequence[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    for layer, size in enumerate(sizes):
        for a in range(size):
            if a != choices[layer]:
                yield (*choices[:layer], a, *choices[layer + 1 :]), layer


def _worth(saved_s: float, lost: float, instance: CodesignInstance) -> float:
    """Seconds for what is lost of the budget; what loses nothing is worth most, and without a budget seconds alone."""
    if instance.error_budget is None:
        return saved_s
    return saved_s / lost if lost > 0 else float("inf")


def _sending_s(strategy: Strategy, rate: float) -> float:
    return strategy.encoding_s + 2 * sum(each.bytes for each in strategy.reductions) / rate


def _groups(layer: Layer) -> list[list[Strategy]]:
    """Groups of strategies that differ in their compressors only, by their first ones; what loses least comes first."""
    found: dict[Any, list[Strategy]] = {}
    for strategy in layer.strategies:
        data = strategy.model_dump(exclude={"name", "encoding_s", "error", "reductions"})
        key = str(data), tuple(each.groups for each in strategy.reductions)
        found.setdefault(key, []).append(strategy)
    return [part for group in found.values() for part in _split(group)]


def _split(group: list[Strategy]) -> Iterator[list[Strategy]]:
    """Of several that nothing is compressed of, each begins a group; the first one has the compressed ones."""
    plain = [each for each in group if not each.error and not each.encoding_s]
    others = sorted((each for each in group if each not in plain), key=lambda each: each.error)
    yield [*plain[:1], *others]
    yield from ([each] for each in plain[1:])


def _with(layer: Layer, strategies: Sequence[Strategy]) -> Any:
    """The layer's data with some of its strategies, in its own order."""
    kept = {each.name for each in strategies}
    return layer.model_dump() | {"strategies": [each for each in layer.strategies if each.name in kept]}
