"""The reader of the contest's format."""

import gzip
import json

import numpy as np
import pytest
from refusals import one_line

from ddlopt.instances.readers import FORMATS, convert
from ddlopt.models.errors import InstanceError

EXAMPLE = {
    "problem": {
        "name": "two",
        "nodes": {"intervals": [[0, 3], []], "costs": [[1, 10**18], [3, 4]], "usages": [[5, 6], [7, 8]]},
        "edges": {"nodes": [[0, 1], [1, 0]], "costs": [[1, 2, 10**18, 4], [1, 2, 10**18, 4]]},
        "usage_limit": 9,
    }
}


def _write(path, data):
    text = data if isinstance(data, str) else json.dumps(data)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["two.json", "two.json.gz"])
def test_example(tmp_path, name):
    assert "iopddl" in FORMATS
    instance = convert(_write(tmp_path / name, EXAMPLE), "iopddl")
    assert instance.name == "two"
    assert instance.costs.as_lists() == [[1, None], [3, 4]]
    assert instance.intervals.tolist() == [[0, 3], [0, 0]]
    assert len(instance.tables) == 1
    assert instance.table_of.tolist() == [0, 0]
    assert np.isinf(instance.tables.values[2])
    assert instance.usage_limit == 9
    assert convert(tmp_path / name, "iopddl", no_limit=True).usage_limit is None


def _changed(part, key, value):
    data = json.loads(json.dumps(EXAMPLE))
    (data["problem"][part] if part else data["problem"])[key] = value
    return data


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (json.dumps(EXAMPLE)[:60], "cannot be read"),
        ({"nodes": 1}, "expected an object with a problem"),
        (_changed(None, "nodes", 3), "problem.nodes is 3; expected an object"),
        (_changed("nodes", "costs", None), "nodes.costs is None; expected a list"),
        (_changed("nodes", "intervals", [[0, 3], [1]]), r"nodes.intervals\[1\] is \[1\]; expected two whole numbers"),
        (_changed("edges", "nodes", [[0, 1], [1]]), r"edges.nodes\[1\] is \[1\]"),
        (_changed("edges", "nodes", [[0, 1], [1, 5]]), r"edges\[1\] joins \[1, 5\], but there are 2 nodes"),
        (_changed("edges", "nodes", [[0, 1], [1, 1]]), r"edges.nodes\[1\] joins node 1 with itself"),
        (_changed("edges", "nodes", [[0, 1]]), "edges.costs has 2 lists, but edges.nodes has 1 edges"),
        (_changed("edges", "costs", [[1, 2, 3, 4], [1, 2, 3]]), r"edges\[1\] has 3 costs"),
        (_changed("edges", "costs", [[1, 2, 3, 4], 7]), r"edges.costs\[1\] is 7; expected a list of numbers"),
        (_changed("edges", "costs", [[1, 2, 3, 4], [1, [2], 3, 4]]), r"edges.costs\[1\] has \[2\]"),
        (_changed("nodes", "costs", [[1, "x"], [3, 4]]), r"nodes.costs\[0\] has 'x'"),
        (_changed("nodes", "usages", [[5], [7, 8]]), r"usages\[0\] has 1 strategies, but costs\[0\] has 2"),
        (_changed(None, "usage_limit", -1), "usage_limit"),
    ],
)
def test_bad_files_in_one_line(tmp_path, data, words):
    with one_line(InstanceError, match=words):
        convert(_write(tmp_path / "bad.json", data), "iopddl")
