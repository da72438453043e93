"""Instances with figures that no generator draws but that their schema allows: zeros, ties, tiny beside huge."""

from ddlopt.models.errors import DdloptError

KINDS = ("zeros", "ties", "tiny", "huge", "unequal", "outlier")
"""Some figures are 0; have one of two values; are all 1e-12 or 1e12 times as large; unequal by 1e12; one by 1e9."""
_UNITS = ("_s", "bytes", "flops", "_per_s")


def odd(instance, kind, rng):
    """The instance with figures of one to three fields made odd; None if there is no such instance.

    A field is what has one name in the data, wherever it is; whole numbers that count or point at something stay.
    """
    data = instance.model_dump(mode="json")
    fields = {}
    _collect(data, "", fields)
    fields = {name: places for name, places in fields.items() if any(parent[key] for parent, key in places)}
    if not fields:
        return None
    for name in rng.sample(sorted(fields), min(len(fields), rng.choice((1, 1, 2, 3)))):
        _make_odd(fields[name], kind, rng)
    try:
        return type(instance).from_data(data)
    except DdloptError:
        return None


def of_anybody(solution):
    """The solution without the digest of the instance that it was made for."""
    return solution.model_copy(update={"instance_digest": None})


def _make_odd(places, kind, rng):
    values = [parent[key] for parent, key in places]
    some = [each for each in values if each]
    lone = rng.randrange(len(places))
    for number, (parent, key) in enumerate(places):
        value = parent[key]
        if kind == "zeros" and rng.random() < 0.5:
            value = 0.0
        elif kind == "ties":
            value = rng.choice(some[:2])
        elif kind == "tiny":
            value *= 1e-12
        elif kind == "huge":
            value *= 1e12
        elif kind == "unequal":
            value *= 10.0 ** rng.choice((-6, -3, 0, 0, 3, 6))
        elif kind == "outlier" and number == lone:
            value *= 1e9
        parent[key] = value


def _collect(data, name, fields):
    """Where the figures of every field are: the list or object, and the place in it."""
    if isinstance(data, dict):
        for key, value in data.items():
            _note(data, key, value, key, fields)
    elif isinstance(data, list):
        for number, value in enumerate(data):
            _note(data, number, value, name, fields)


def _note(parent, key, value, name, fields):
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, dict | list):
        _collect(value, name, fields)
    elif isinstance(value, float) or name.endswith(_UNITS):
        fields.setdefault(name, []).append((parent, key))
