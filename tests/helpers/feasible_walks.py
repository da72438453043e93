"""Random feasible solutions of any problem: a walk from known ones, which knows nothing but the independent check."""

import copy

from ddlopt.models.catalogue import problem_of
from ddlopt.models.errors import DdloptError

LABELS = ("family", "problem", "instance", "instance_digest", "name")
"""What says whose answer it is, and nothing of the answer."""


def walked(instance, first, rng, count, tries=60):
    """Up to ``count`` different feasible solutions with their exact objectives, at most half of them of ``first``.

    Each step changes a known solution in one to three places and keeps what the check lets pass; half of the steps go
    on from the best, so that the solutions which matter most to a bound are among them. ``tries`` changes are tried for
    each solution that is wanted.
    """
    found, seen = [], set()
    sense = 1 if instance.sense == "minimize" else -1

    def keep(solution):
        if solution.digest in seen:
            return
        seen.add(solution.digest)
        try:
            checked = problem_of(instance).evaluate(instance, solution, exact=True)
        except (DdloptError, IndexError, KeyError, ValueError, ZeroDivisionError):
            return
        if checked.feasible:
            found.append((solution, checked.objective))

    for solution in rng.sample(first, len(first)):
        if 2 * len(found) < count:
            keep(solution)
    for _ in range(tries * count):
        if not found or len(found) >= count:
            break
        base = min(found, key=lambda pair: sense * pair[1]) if rng.random() < 0.5 else rng.choice(found)
        data = changed(base[0].model_dump(mode="json"), rng)
        try:
            keep(type(base[0]).from_data(data))
        except DdloptError:
            continue
    return found


def changed(data, rng):
    """The data of an answer, to which one to three changes are made that keep its form."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = [place for place in _places(data, (), (), []) if place[0][0] not in LABELS]
        if not places:
            break
        path, pattern = rng.choice(places)
        parent = data
        for key in path[:-1]:
            parent = parent[key]
        siblings = [_at(data, other) for other, its in places if its == pattern]
        _change(parent, path[-1], siblings, rng)
    return data


def _change(parent, key, siblings, rng):
    value = parent[key]
    what = rng.choice(("near", "sibling", "swap", "gone", "more", "new"))
    if what == "swap" and isinstance(parent, list):
        other = rng.randrange(len(parent))
        parent[key], parent[other] = parent[other], parent[key]
    elif what == "gone" and isinstance(parent, list):
        del parent[key]
    elif what == "more" and isinstance(value, list):
        numbers = [each for other in siblings if isinstance(other, list) for each in other]
        value.insert(rng.randrange(len(value) + 1), copy.deepcopy(rng.choice(numbers)) if numbers else rng.randrange(9))
    elif what == "near" and isinstance(value, bool):
        parent[key] = not value
    elif what == "near" and isinstance(value, int):
        parent[key] = value + rng.choice((-1, 1))
    elif what == "near" and isinstance(value, float):
        parent[key] = value * rng.choice((0.5, 0.9, 0.99, 1.01, 1.1, 2.0))
    elif what == "new" and isinstance(value, int):
        parent[key] = rng.randrange(max([0, *(each for each in siblings if isinstance(each, int))]) + 2)
    else:
        parent[key] = copy.deepcopy(rng.choice(siblings))


def _places(data, path, pattern, found):
    """Paths of all values, each with its pattern: the path with one sign for every place in a list."""
    isdict = isinstance(data, dict)
    for key, value in data.items() if isdict else enumerate(data):
        its, sort = (*path, key), (*pattern, key if isdict else None)
        found.append((its, sort))
        if isinstance(value, dict | list):
            _places(value, its, sort, found)
    return found


def _at(data, path):
    for key in path:
        data = data[key]
    return data
