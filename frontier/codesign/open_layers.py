"""Layers whose strategies are left open, as sums of options: what may be added to what all other layers send."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from ddlopt.models.codesign.demand import ring_factor
from ddlopt.models.codesign.tables import Floats, Tables

_DIGITS = 12
"""Of what options send and compute, in which they are compared."""


@dataclass(frozen=True, eq=False)
class Needs:
    """What some choices of strategies ask of servers and links.

    Parameters
    ----------
    traffic : (n, n) array
        Bytes.
    rings : (groups,) array
        Hop bytes of each group.
    busy_s : (n,) array
        Seconds that each server computes.
    """

    traffic: Floats
    rings: Floats
    busy_s: Floats


@dataclass(frozen=True, eq=False)
class OpenLayers:
    """Layers by kind, those with the same options, and options.

    Parameters
    ----------
    layers : tuple of int
        How many layers there are of each kind.
    choices : tuple of (kind, option)
    options : tuple of Needs
    """

    layers: tuple[int, ...]
    choices: tuple[tuple[int, int], ...]
    options: tuple[Needs, ...]


def tables_left_open(tables: Tables) -> tuple[int, ...]:
    """Layers that read nothing, as embedding tables, where several of them are read by the same layer."""
    reader = dict(tables.instance.edges)
    nothing = [
        layer
        for layer, each in enumerate(tables.instance.layers)
        if layer in reader and all(strategy.reads is None for strategy in each.strategies)
    ]
    readers = Counter(reader[layer] for layer in nothing)
    return tuple(layer for layer in nothing if readers[reader[layer]] > 1)


def strategies_of_readers(tables: Tables, layers: tuple[int, ...]) -> Iterator[dict[int, int]]:
    """All ways to choose strategies for the layers that read these."""
    readers = sorted({target for source, target in tables.instance.edges if source in layers})
    for chosen in product(*(range(tables.sizes[reader]) for reader in readers)):
        yield dict(zip(readers, chosen, strict=True))


def needs_of(tables: Tables, reduced: Floats, moved: Floats, busy_s: Floats) -> Needs:
    """What these bytes need, (group sets,) and (patterns,)."""
    n = tables.instance.servers
    traffic = np.zeros((n, n))
    for pattern in np.flatnonzero(moved):
        traffic += moved[pattern] * tables.patterns[pattern].unit.toarray()
    factors = np.array([ring_factor(len(members)) for members in tables.groups])
    return Needs(traffic, tables.group_bytes(reduced) * factors, busy_s)


def open_layers(tables: Tables, layers: tuple[int, ...], readers: Mapping[int, int]) -> OpenLayers:
    """What these layers may add, given the strategies of the layers that read them."""
    instance, sets = tables.instance, len(tables.groups_of)
    kinds: list[list[Needs]] = []
    for layer in layers:
        (edge,) = (edge for edge, (source, _) in enumerate(instance.edges) if source == layer)
        target = readers[instance.edges[edge][1]]
        options = []
        for a in range(tables.sizes[layer]):
            figures, busy = np.zeros(sets + len(tables.patterns)), np.zeros(instance.servers)
            for figure, amount in tables.own[layer][a].items():
                figures[figure] += amount
            if (pattern := int(tables.moves[edge][a, target])) >= 0:
                figures[sets + pattern] += tables.edge_bytes[edge]
            busy[tables.runs_on[layer][a]] = tables.compute_s[layer][a]
            options.append(needs_of(tables, figures[:sets], figures[sets:], busy))
        kinds.append(options)
    return _by_kind([{_look(each): each for each in options} for options in kinds], [1] * len(kinds))


def nothing_open(tables: Tables) -> OpenLayers:
    """One layer with one option that asks for nothing: the strategies of all layers are chosen."""
    n = tables.instance.servers
    nothing = Needs(np.zeros((n, n)), np.zeros(len(tables.groups)), np.zeros(n))
    return OpenLayers((1,), ((0, 0),), (nothing,))


def with_images(tables: Tables, layers: OpenLayers, images: Sequence[tuple[int, ...]]) -> OpenLayers | None:
    """Close the sets of options under the given automorphisms of the servers.

    A permutation takes each kind of layers to some kind, and that kind gets the images of its options. Which kind it
    takes is free, since more options only weaken a bound: the one with the most options in common.

    Returns
    -------
    OpenLayers, or None
        None if a permutation takes a group with anything to reduce to servers that are none.
    """
    options = [{_look(each): each for each in _options(layers, kind)} for kind in range(len(layers.layers))]
    became = []
    for image in images:
        looks = [{_look(new) for each in found.values() if (new := moved_to(tables, each, image))} for found in options]
        free, to = set(range(len(options))), list[int]()
        for kind, of_kind in enumerate(looks):
            equal = [other for other in sorted(free) if layers.layers[other] == layers.layers[kind]]
            to.append(max(equal, key=lambda other: len(of_kind & options[other].keys())))
            free.remove(to[-1])
        became.append((image, to))
    new_ones = [(kind, each) for kind, found in enumerate(options) for each in found.values()]
    while new_ones:
        kind, each = new_ones.pop()
        for image, to in became:
            moved = moved_to(tables, each, image)
            if moved is None:
                return None
            if options[to[kind]].setdefault(_look(moved), moved) is moved:
                new_ones.append((to[kind], moved))
    return _by_kind(options, layers.layers)


def moved_to(tables: Tables, needs: Needs, image: tuple[int, ...]) -> Needs | None:
    """The same with each server's image in its place; None if a group's is none."""
    place = {members: k for k, members in enumerate(tables.groups)}
    where, traffic, rings, busy = (
        np.array(image),
        np.zeros_like(needs.traffic),
        np.zeros_like(needs.rings),
        np.zeros_like(needs.busy_s),
    )
    traffic[np.ix_(where, where)] = needs.traffic
    busy[where] = needs.busy_s
    for k in np.flatnonzero(needs.rings):
        there = place.get(tuple(sorted(image[s] for s in tables.groups[k])))
        if there is None:
            return None
        rings[there] = needs.rings[k]
    return Needs(traffic, rings, busy)


def is_symmetric(tables: Tables, needs: Needs, image: tuple[int, ...]) -> bool:
    """Whether a permutation of the servers leaves these needs as they are."""
    moved = moved_to(tables, needs, image)
    return moved is not None and _look(moved) == _look(needs)


def _options(layers: OpenLayers, kind: int) -> Iterator[Needs]:
    return (layers.options[option] for each, option in layers.choices if each == kind)


def _by_kind(options: list[dict[bytes, Needs]], layers: npt.ArrayLike) -> OpenLayers:
    """Layers with the same options are of one kind."""
    known: dict[bytes, int] = {}
    listed: list[Needs] = []
    kinds: Counter[tuple[int, ...]] = Counter()
    for found, count in zip(options, np.asarray(layers).tolist(), strict=True):
        for look, each in found.items():
            if known.setdefault(look, len(listed)) == len(listed):
                listed.append(each)
        kinds[tuple(sorted(known[look] for look in found))] += count
    choices = tuple((kind, option) for kind, found in enumerate(kinds) for option in found)
    return OpenLayers(tuple(kinds.values()), choices, tuple(listed))


def _look(needs: Needs) -> bytes:
    parts = (needs.traffic, needs.rings, needs.busy_s)
    return b"".join(_rounded(each).tobytes() for each in parts)


def _rounded(values: Floats) -> Floats:
    """To some digits of the largest, without negative zeros."""
    largest = float(np.abs(values).max(initial=0.0))
    if not largest:
        return np.zeros_like(values)
    power = 10.0 ** np.floor(np.log10(largest))
    return np.asarray(np.round(values / power, _DIGITS - 2) + 0.0)
