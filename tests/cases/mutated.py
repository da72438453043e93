"""Answers as data that are changed a little, at random: what a check has to tell from the answer that they were."""

import copy
import random
from collections.abc import Iterator
from typing import Any

KEPT = {"family", "problem", "instance", "instance_digest"}
"""Fields of an answer that say what it answers."""


def mutants(data: dict[str, Any], source: random.Random) -> Iterator[dict[str, Any]]:
    """The answer with one to three changes, without end. Numbers stay of their kind, so that files can be read."""
    words = sorted(set(_words(data)))
    while True:
        changed = copy.deepcopy(data)
        for _ in range(source.choice((1, 1, 1, 2, 3))):
            _change(changed, words, source)
        yield changed


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of everything in an answer that may be changed."""
    pairs = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in pairs:
        if key not in KEPT:
            yield data, key
            if isinstance(value, dict | list):
                yield from _places(value)


def _words(data: Any) -> Iterator[str]:
    for container, key in _places(data):
        if isinstance(container[key], str):
            yield container[key]


def _change(data: dict[str, Any], words: list[str], source: random.Random) -> None:
    places = list(_places(data))
    if not places:
        return
    container, key = source.choice(places)
    value = container[key]
    match value:
        case bool():
            container[key] = not value
        case int():
            near = (value + 1, value - 1, -value, 0, 1, 2 * value, value + source.randint(-9, 9), source.randint(0, 9))
            container[key] = source.choice(near)
        case float():
            shifts = (1e-12, -1e-12, 1e-7, -1e-7, 1e-3, -0.1, 1.0)
            near = (value * (1 + source.choice(shifts)), -value, 0.0, 1.0, float(round(value)), source.random())
            container[key] = source.choice(near)
        case str():
            container[key] = source.choice(words + _like(value))
        case list():
            _change_list(value, source)
        case None if isinstance(container, list):
            container[key] = source.choice([each for each in container if each is not None] or [None])


def _like(word: str) -> list[str]:
    """Fractions beside a fraction, and a word that nobody has."""
    number, bar, parts = word.partition("/")
    if number.isdigit() and (not bar or parts.isdigit()):
        return [str(int(number) + 1) + bar + parts, str(max(0, int(number) - 1)) + bar + parts, "1/3"]
    return [f"{word}x"]


def _change_list(values: list[Any], source: random.Random) -> None:
    if not values:
        return
    one, other = (source.randrange(len(values)) for _ in range(2))
    match source.randrange(5):
        case 0:
            del values[one]
        case 1:
            values.insert(other, copy.deepcopy(values[one]))
        case 2 | 3:
            values[one], values[other] = values[other], values[one]
        case 4:
            values[one] = copy.deepcopy(values[other])
