"""Tables of proofs for pipelines: sets of layers as words of 64 bits, and memory in parts of what there is."""

from fractions import Fraction

import pytest

from ddlopt.certificates.deployment.pipeline.tables import FINE, ROOM, ideals_of, memory, tables_of
from ddlopt.instances.generators.deployment import generate


@pytest.mark.parametrize("layers", [62, 63, 64, 65])
def test_sets_of_layers_are_words_of_64_bits(layers):
    sizes = {"layers": layers, "devices": 2, "micro_batches": 2, "memory": 1.2, "shape": "chain", "alike": False}
    instance = generate("pipeline", 1, **sizes)
    ideals, words = ideals_of(instance), tables_of(instance, Fraction(1)).words
    assert words.shape == (len(ideals), 1 if instance.size <= 64 else 2)
    assert [sum(int(word) << 64 * place for place, word in enumerate(row)) for row in words] == ideals


@pytest.mark.parametrize(
    ("kept", "fixed", "flying", "parts"),
    [
        (2 * FINE, FINE, 3, 7),
        (2 * FINE, 0, 1, 2),
        (FINE - 1, 0, 1, 0),
        (FINE, FINE - 1, 1, 1),
        (ROOM * FINE, 0, 1, ROOM),
        (ROOM * FINE, ROOM * FINE, 2, ROOM + 1),
    ],
)
def test_memory_is_rounded_down_and_no_more_than_a_part_above_what_there_is(kept, fixed, flying, parts):
    assert memory(kept, fixed, flying) == parts
