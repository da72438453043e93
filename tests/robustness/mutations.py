"""Changes that nobody would make on purpose, to data and to text, for Hypothesis to choose from."""

import copy

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

HUGE = 10**400
NUMBERS = [0, -1, 1, 2, 1000, 2**31, 2**53 + 1, 2**63, -(2**63), 10**30, HUGE, 0.5, -0.0, 1e-320, 1e300, -1e308, 1.5]
WORDS = ["", "x", "0", "NaN", "\x1b[31m", "\u202e", "[/nope]", "\0", "n" * 300]
PARTS = [[], {}, [[]], [0], ["x"], {"x": 1}, [None], [1e308, 1e308], {"": {}}]
ODD = [None, True, False, float("nan"), float("inf"), float("-inf"), *NUMBERS, *WORDS, *PARTS]


def volume(examples):
    """Settings for so many examples, the same ones every time."""
    return settings(
        max_examples=examples, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )


def paths(data, path=()):
    """Where there is something in nested data."""
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from paths(value, (*path, key))


@st.composite
def mutated(draw, data):
    """The data after one to three changes: values odd or of elsewhere, parts missing, double, new or exchanged."""
    data = copy.deepcopy(data)
    for _ in range(draw(st.integers(1, 3))):
        places = list(paths(data))
        path = places[draw(st.integers(0, len(places) - 1))]
        if not path:
            if draw(st.integers(0, 9)) == 0:
                return copy.deepcopy(draw(st.sampled_from(ODD)))
            path = places[min(1, len(places) - 1)]
            if not path:
                return data
        parent = data
        for key in path[:-1]:
            parent = parent[key]
        _change(draw, data, parent, path[-1], places)
    return data


def _change(draw, data, parent, key, places):
    what = draw(st.sampled_from(["odd", "odd", "near", "gone", "twice", "elsewhere", "new"]))
    value = parent[key]
    if what == "near" and isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
        parent[key] = draw(st.sampled_from([value + 1, value - 1, -value, value * 1e9, float(value), str(value)]))
    elif what == "gone":
        del parent[key]
    elif what == "twice" and isinstance(parent, list):
        parent.insert(draw(st.integers(0, len(parent))), copy.deepcopy(value))
    elif what == "elsewhere":
        other = data
        for step in places[draw(st.integers(0, len(places) - 1))]:
            other = other[step]
        parent[key] = copy.deepcopy(other)
    elif what == "new" and isinstance(parent, dict):
        parent[draw(st.sampled_from(["x", "", "family", "\x1b[31m", f"{key}"]))] = copy.deepcopy(
            draw(st.sampled_from(ODD))
        )
    else:
        parent[key] = copy.deepcopy(draw(st.sampled_from(ODD)))


TOKENS = [
    b"", b"0", b"-1", b"nan", b"inf", b"1e999", b"99999999999999999999", b"\x00", b"\xff\xfe", b"\x1b[31m", b",", b"\n",
    b'"', b"'", b"{", b"}", b"[", b"]", b"\t", b"\xe2\x80\xae", b" ", b"x" * 300, b"1.5", b"None", b"__import__('os')",
]  # fmt: skip


@st.composite
def mutated_bytes(draw, data):
    """A file after one to four changes: words, lines and bytes odd, cut out, doubled, exchanged, the end missing."""
    for _ in range(draw(st.integers(1, 4))):
        if not data:
            return data
        at = draw(st.integers(0, len(data) - 1))
        to = min(len(data), at + draw(st.sampled_from([0, 1, 1, 2, 5, 20, 200])))
        what = draw(st.sampled_from(["token", "token", "cut", "twice", "end", "line", "swap"]))
        if what == "token":
            data = data[:at] + draw(st.sampled_from(TOKENS)) + data[to:]
        elif what == "cut":
            data = data[:at] + data[to:]
        elif what == "twice":
            data = data[:to] + data[at:to] + data[to:]
        elif what == "end":
            data = data[:at]
        else:
            lines = data.split(b"\n")
            i, j = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
            if what == "line":
                lines.insert(i, lines[j])
            else:
                lines[i], lines[j] = lines[j], lines[i]
            data = b"\n".join(lines)
    return data
