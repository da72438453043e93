"""Sets of bundled instances whose composition is fixed, so that scores of different years mean the same.

``sets.json`` has them, with the digest of every instance; what is in a set is never changed once it is released. A set
with other instances gets another name (``standard-2``). They were chosen by :func:`chosen`: of each problem those that
are farthest apart in the logarithms of their sizes and of the seconds that proving them takes, so that a set is diverse
and no family of names is in it ten times. Before a release ``text(chosen(index.read()))`` writes the file anew.
"""

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from ddlopt.instances import record
from ddlopt.instances.index import Index, Listed
from ddlopt.instances.library import certificates

TITLES = {
    "tiny": "small instances that are proven in a second or two: a minute in all",
    "standard": "diverse instances of all problems that are proven within a minute each: about an hour in all",
    "hard": "instances that are proven, but not by default within half a minute",
    "open": "instances that nobody had proven when the set was made",
}
_SECONDS = {"tiny": (0.0, 1.0), "standard": (0.0, 30.0), "hard": (30.0, math.inf)}
"""Of proving, by set."""
_COUNT = {"tiny": 2, "standard": 5, "hard": 5}
"""Instances of a problem at most, by set."""


@cache
def members(name: str) -> Mapping[str, str]:
    """Names of the instances of a set, and the digests that they have had since it was made."""
    found: dict[str, str] = _all()[name]
    return found


def chosen(index: Index) -> dict[str, dict[str, str]]:
    """What the sets would be if they were made now, from the index of the library.

    Returns
    -------
    dict
        By set the digests by name, in the order of the library.
    """
    by_set: dict[str, list[str]] = {name: [] for name in TITLES}
    for path in index.problems:
        own = [listed for listed in index.instances.values() if listed.problem == path]
        by_set["open"] += [listed.name for listed in own if not listed.proven]
        for name, (least_s, most_s) in _SECONDS.items():
            known = [listed for listed in own if listed.proven and seconds(listed) is not None]
            of_set = [listed for listed in known if least_s <= (seconds(listed) or 0.0) < most_s]
            by_set[name] += farthest(of_set, _COUNT[name])
    return {
        name: {each: listed.digest for each, listed in index.instances.items() if each in set(names)}
        for name, names in by_set.items()
    }


def seconds(listed: Listed) -> float | None:
    """What proving the instance took: when its certificate was made, or else in the run whose bound proves it.

    None where nobody noted it.
    """
    noted: float | None = certificates.entries().get(listed.name, {}).get("proving_s")
    known = None if noted is not None else record(listed.name)
    if known is None or known.bound is None:
        return noted
    found = None if known.found is None else known.found.seconds
    return found if known.bound.seconds is None else known.bound.seconds


def farthest(own: Sequence[Listed], count: int) -> list[str]:
    """Names of instances of a problem, each as far from those before it as can be; the smallest is first."""
    places = {listed.name: _features(listed) for listed in own}
    left, taken = sorted(places, key=lambda name: (places[name], name)), list[str]()
    while left and len(taken) < count:
        far = left[0]
        if taken:
            far = max(left, key=lambda name: min(math.dist(places[name], places[other]) for other in taken))
        taken.append(far)
        left.remove(far)
    return taken


def _features(listed: Listed) -> tuple[float, ...]:
    """Logarithms of sizes and of seconds."""
    sizes = [math.log(1 + size) if isinstance(size, int) else 0.0 for size in listed.sizes.values()]
    return (*sizes, *[0.0] * (3 - len(sizes)), math.log(1 + (seconds(listed) or 0.0)))


def text(sets: Mapping[str, Mapping[str, str]]) -> str:
    """As ``sets.json`` has them, a line an instance."""
    parts = []
    for name, digests in sets.items():
        lines = ",\n".join(f"  {json.dumps(each)}: {json.dumps(digest)}" for each, digest in digests.items())
        parts.append(f" {json.dumps(name)}: {{\n{lines}\n }}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


@cache
def _all() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads((files(__package__) / "sets.json").read_text(encoding="utf-8"))
    return found
