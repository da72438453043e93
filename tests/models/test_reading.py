"""Files that anybody may have written: a byte order mark in front of the text is no part of it."""

import json

import pytest

import ddlopt
from ddlopt.instances import clusters
from ddlopt.models.reading import UnreadableError, parsed, read_text

MARK = "\ufeff"


def test_a_mark_in_front_is_no_part_of_the_text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(f"{MARK}a{MARK}b", encoding="utf-8")
    assert read_text(path) == f"a{MARK}b"
    path.write_bytes(b"\xff\xfea\x00")
    with pytest.raises(UnreadableError):
        read_text(path)


def test_instances_solutions_and_clusters_are_read_with_a_mark(tmp_path):
    instance = ddlopt.load("topology/tiny-n4-d2")
    path = tmp_path / "instance.json"
    path.write_text(MARK + instance.to_json(), encoding="utf-8")
    assert ddlopt.load(path) == instance
    solution = ddlopt.solve(instance, "topology-finder").solution
    kept = tmp_path / "solution.json"
    kept.write_text(MARK + solution.to_json(), encoding="utf-8")
    assert ddlopt.check(instance, kept).feasible
    cluster = tmp_path / "cluster.toml"
    cluster.write_text(MARK + clusters.load("aws-p4d").to_toml(), encoding="utf-8")
    assert clusters.load(cluster) == clusters.load("aws-p4d")


def test_infinite_figures_are_refused_unless_somebody_looks():
    text = json.dumps({"a": [float("inf"), float("nan")]})
    with pytest.raises(ValueError, match="not a number that JSON knows"):
        parsed(text)
    assert parsed(text, finite=False)["a"][0] == float("inf")
