"""The knapsack of a stage's options against all mixtures."""

import itertools
import random

from volume import for_each, seeds

from ddlopt.models.deployment.pipeline.knapsack import Mix, best_mixes, fastest_mixes


def drawn(seed):
    """Groups with ties, zeros, single options and sizes that nearly go with the time saved."""
    draw = random.Random(seed)
    groups = []
    for _ in range(draw.randint(1, 7)):
        size, time = draw.choice([(9, 9), (40, 3), (3, 40)])
        near = draw.random() < 0.4
        mixes = []
        for number in range(draw.randint(1, 4)):
            memory = draw.randint(0, size)
            mixes.append(Mix(memory, time + size - memory if near else draw.randint(0, time), number))
        groups.append(best_mixes(mixes, 10**9))
    lean, fast = (sum(group[end].memory for group in groups) for end in (0, -1))
    return groups, draw.choice([lean, fast, draw.randint(lean, fast)])


@for_each("seed", seeds(300, 6000))
def test_the_fastest_mixture_is_that_of_all(seed):
    groups, most = drawn(seed)
    found = fastest_mixes(groups, most)
    assert all(mix in group for mix, group in zip(found, groups, strict=True))
    assert sum(mix.memory for mix in found) <= most
    every = (mixture for mixture in itertools.product(*groups) if sum(mix.memory for mix in mixture) <= most)
    assert sum(mix.time for mix in found) == min(sum(mix.time for mix in mixture) for mixture in every)


def test_many_groups_that_are_unlike_take_few_mixtures():
    """A list of all mixtures that nothing beats would have hundreds of thousands."""
    draw = random.Random(5)
    groups = []
    for _ in range(200):
        size, time = draw.randint(10**6, 10**8), draw.randint(10**6, 10**8)
        groups.append((Mix(size, time, 0), Mix(size * 9, time * draw.randint(60, 90) // 100, 1)))
    lean, fast = (sum(group[end].memory for group in groups) for end in (0, -1))
    most = (lean + fast) // 2
    found = fastest_mixes(groups, most)
    assert sum(mix.memory for mix in found) <= most
    # Whole options lose less than one of them against options in part, those first that save most.
    left, least = most - lean, float(sum(group[0].time for group in groups))
    saved = [(group[0].time - group[1].time, group[1].memory - group[0].memory) for group in groups]
    for time, memory in sorted(saved, key=lambda pair: pair[0] / pair[1], reverse=True):
        part = min(1.0, left / memory)
        left, least = left - part * memory, least - part * time
    assert least <= sum(mix.time for mix in found) <= least + max(time for time, _ in saved) / 20
