"""The best plan of a pipeline by all sequences of stages, in rational numbers: what ``pipeline-ideals`` is held to."""

import itertools
from fractions import Fraction
from functools import cache


def best_of_sequences(instance):
    """The least time of a sample over all sets, degrees and options, with no bound and no dominance; None if none fits.

    From the last stage on, with the layers, devices and replicas that are left as what is remembered.
    """
    count, samples = instance.size, instance.micro_batches
    every = frozenset(range(count))
    edges = [(edge.maker, edge.user, Fraction(edge.size_bytes)) for edge in instance.edges]
    degrees = [d for d in range(1, min(samples, instance.devices) + 1) if samples % d == 0]
    tensors = sorted({menu.tensor for layer in instance.layers for menu in layer.menus})
    bandwidth, memory = Fraction(instance.bandwidth_bytes_per_s), Fraction(instance.memory_bytes)

    @cache
    def ways(stage, tensor):
        """Time, weights, and memory for each sample and besides, of all choices of options."""
        found = set()
        for chosen in itertools.product(*(instance.layers[layer].menu(tensor) for layer in sorted(stage))):
            option = dict(zip(sorted(stage), chosen, strict=True))
            moved = Fraction(0)
            for maker, user, size in edges:
                if user in stage and maker not in stage:
                    moved += size + Fraction(dict(option[user].gathered).get(maker, 0))
                if maker in stage and user not in stage:
                    moved += size + Fraction(dict(option[maker].scattered).get(user, 0))
            sums = [sum(Fraction(getattr(each, name)) for each in chosen) for name in NAMES]
            found.add((sums[0] + 2 * moved / bandwidth, *sums[1:]))
        return found

    @cache
    def load(stage, tensor, d, flying):
        times = [
            (time + 4 * (d - 1) * weights / samples / bandwidth) / d
            for time, weights, kept, fixed in ways(stage, tensor)
            if kept * flying + fixed <= memory
        ]
        return min(times, default=None)

    @cache
    def least(left, devices, behind):
        if not left:
            return Fraction(0)
        found = None
        for size in range(1, len(left) + 1):
            for stage in map(frozenset, itertools.combinations(sorted(left), size)):
                if any(maker in stage and user in left - stage for maker, user, _ in edges):
                    continue
                for tensor, d in itertools.product(tensors, degrees):
                    if tensor * d > devices or behind + d > samples:
                        continue
                    own = load(stage, tensor, d, -(-(behind + d) // d))
                    rest = None if own is None else least(left - stage, devices - tensor * d, behind + d)
                    if rest is not None and (found is None or max(own, rest) < found):
                        found = max(own, rest)
        return found

    return least(every, instance.devices, 0)


NAMES = ("time_s", "weight_bytes", "kept_bytes", "fixed_bytes")
