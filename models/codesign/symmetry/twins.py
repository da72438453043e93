"""Layers that can be exchanged without any change, so that only their numbers by strategy matter."""

from collections.abc import Sequence

from ddlopt.models.codesign.tables import Tables


def twin_layers(tables: Tables) -> tuple[tuple[int, ...], ...]:
    r"""Every layer in one class: those of a class can be exchanged without any change, and no edge joins two classes.

    Two layers are *twins* if their strategies have the same times, memory, errors, servers and bytes, one by one, and
    if both read the same layers and are read by the same ones, with the same bytes and patterns. Exchanging two twins
    is then an automorphism of the instance that leaves everything else where it is. So the permutations of a class of K
    twins act on its choices alone, and of the :math:`A^K` choices of A strategies, only the
    :math:`\binom{K + A - 1}{A - 1}` orbits differ: how many layers take each strategy.

    Numbers also suffice for the pairs along an edge if its other end is a single layer: where that takes b, the number
    of pairs (a, b) is that of layers that take a. Between two classes it would not be known who meets whom. So a class
    next to a larger one comes apart into single layers.

    Layers that repeat along a chain are *not* twins, even if they are identical. The pairs between the first and the
    second of them are other pairs than those between the second and the third, and "three take a, three take b" does
    not say whether the activations are moved once or five times. Permuting them is no automorphism, and numbers would
    give a wrong optimum. What helps there is that a chain is narrow:
    :func:`~ddlopt.frontier.codesign.prices.min_sum.min_sum` eliminates one layer after the other exactly.

    Returns
    -------
    tuple of tuple of int
        Increasing, and by their first layers.
    """
    neighbours: list[list[tuple[int, bool, float, bytes]]] = [[] for _ in tables.sizes]
    for edge, (source, target) in enumerate(tables.instance.edges):
        moves, amount = tables.moves[edge], float(tables.edge_bytes[edge])
        neighbours[source].append((target, True, amount, moves.tobytes()))
        neighbours[target].append((source, False, amount, moves.tobytes()))
    same: dict[tuple[object, ...], list[int]] = {}
    for layer, joined in enumerate(neighbours):
        own = (
            tables.compute_s[layer].tobytes(),
            tables.memory_bytes[layer].tobytes(),
            tables.errors[layer].tobytes(),
            tuple(servers.tobytes() for servers in tables.runs_on[layer]),
            tuple(tuple(sorted(amounts.items())) for amounts in tables.own[layer]),
        )
        same.setdefault((own, tuple(sorted(joined))), []).append(layer)
    together = set[int]()
    classes: list[tuple[int, ...]] = []
    for twins in sorted(same.values(), key=lambda layers: (-len(layers), layers)):
        if len(twins) > 1 and together.isdisjoint(end for end, *_ in neighbours[twins[0]]):
            together.update(twins)
            classes.append(tuple(twins))
        else:
            classes += [(layer,) for layer in twins]
    return tuple(sorted(classes))


def single_layers(tables: Tables) -> tuple[tuple[int, ...], ...]:
    """Every layer in a class of its own."""
    return tuple((layer,) for layer in range(len(tables.sizes)))


def spread(classes: Sequence[Sequence[int]], counts: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Choices of all layers, given how many of each class take each strategy: the first layers take the first."""
    choices: dict[int, int] = {}
    for layers, numbers in zip(classes, counts, strict=True):
        taken = [strategy for strategy, number in enumerate(numbers) for _ in range(number)]
        choices.update(zip(layers, taken, strict=True))
    return tuple(choices[layer] for layer in range(len(choices)))
