"""Instances that are none: each gets one line that names the place, the value and what was expected."""

import gzip
import json

import pytest
from refusals import one_line
from volume import for_each

from ddlopt.instances import load
from ddlopt.models.errors import InstanceError, SolutionError
from ddlopt.models.scheduling import Job
from ddlopt.models.topology import AllReduceGroup, TopologyDesign, TopologyInstance

GOOD = {
    "family": "topology",
    "name": "x",
    "servers": 3,
    "degree": 2,
    "link_bandwidth_bytes_per_s": 1.0,
    "allreduce_groups": [{"members": [0, 1, 2], "gradient_bytes": 6}],
    "traffic_bytes": [[0, 1, 2], [3, 0, 4], [5, 6, 0]],
}


def group(**fields):
    return {"allreduce_groups": [GOOD["allreduce_groups"][0] | fields]}


def entries(*items, size=3):
    return {"traffic_bytes": {"size": size, "entries": list(items)}}


FIELDS = [
    ({"servers": 1}, r"servers: Input should be greater than or equal to 2 \(got 1\)"),
    ({"servers": 4}, r"traffic_bytes has shape \(3, 3\), but 4 servers need \(4, 4\)"),
    ({"servers": 2.5}, r"servers: expected a whole number \(got 2.5\)"),
    ({"servers": "many"}, r"servers: expected a whole number .*'many'"),
    ({"servers": None}, r"servers: expected a whole number .*None"),
    ({"degree": 0}, r"degree: .* greater than or equal to 1 \(got 0\)"),
    ({"degree": 3}, "degree is 3, but 3 servers have at most 2 neighbours; use degree <= 2"),
    ({"degree": -1}, r"degree: .* \(got -1\)"),
    ({"link_bandwidth_bytes_per_s": 0}, r"link_bandwidth_bytes_per_s: .* greater than 0 \(got 0\)"),
    ({"link_bandwidth_bytes_per_s": "fast"}, r"link_bandwidth_bytes_per_s: .*number.*'fast'"),
    ({"compute_s": -0.5}, r"compute_s: .* greater than or equal to 0 \(got -0.5\)"),
    ({"optics": "fibre"}, r"optics: Input should be 'one_way' or 'duplex' \(got 'fibre'\)"),
    ({"overlap": "half"}, r"overlap: Input should be 'none' or 'full' \(got 'half'\)"),
    ({"colour": "red"}, r"colour: there is no such field; remove it or correct its name \(got 'red'\)"),
    ({"parallel_links": "perhaps"}, "parallel_links: .*'perhaps'"),
    (group(members=[0, 3]), r"allreduce_groups\[0\].members contains server 3, but there are 3 servers \(0..2\)"),
    (group(members=[-1, 1]), r"allreduce_groups\[0\].members contains server -1, but there are 3 servers"),
    (group(members=[1]), r"allreduce_groups\[0\].members has 1 member\(s\); a group needs at least 2"),
    (group(members=[]), r"allreduce_groups\[0\].members has 0 member"),
    (group(members=[1, 1]), r"must list each server once and in increasing order, got \[1, 1\]"),
    (group(members=[2, 0]), r"increasing order, got \[2, 0\]"),
    (group(members=3), r"allreduce_groups\[0\].members: .*\(got 3\)"),
    (group(gradient_bytes=0), r"allreduce_groups\[0\].gradient_bytes: .*greater than 0 \(got 0\)"),
    (group(gradient_bytes=-1), r"allreduce_groups\[0\].gradient_bytes: .*\(got -1\)"),
    (group(weight=1), r"allreduce_groups\[0\].weight: there is no such field"),
    ({"allreduce_groups": [], "traffic_bytes": [[0] * 3] * 3}, "nothing to send"),
    ({"traffic_bytes": [[0, 1, 2], [3, 7, 4], [5, 6, 0]]}, r"traffic_bytes\[1\]\[1\] = 7 is on the diagonal"),
    ({"traffic_bytes": [[0, 1, 2], [3, 0, -4], [5, 6, 0]]}, r"traffic_bytes\[1\]\[2\] = -4 is negative; bytes must be"),
    ({"traffic_bytes": [[0, 1, 2], [3, 0], [5, 6, 0]]}, "row 1 has 2 numbers, but there are 3 rows; a mat"),
    ({"traffic_bytes": [[0, 1], [1, 0]]}, r"traffic_bytes has shape \(2, 2\), but 3 servers need \(3, 3\)"),
    ({"traffic_bytes": [[0, 1, 2], [3, 0, 4]]}, "row 0 has 3 numbers, but there are 2 rows"),
    ({"traffic_bytes": [[0, "1", 2], [3, 0, 4], [5, 6, 0]]}, "row 0, column 1 is '1'; expected a number"),
    ({"traffic_bytes": [[0, True, 2], [3, 0, 4], [5, 6, 0]]}, "row 0, column 1 is True; expected a number"),
    ({"traffic_bytes": [[0, None, 2], [3, 0, 4], [5, 6, 0]]}, "row 0, column 1 is None; expected a number"),
    ({"traffic_bytes": [[0, 10**400, 2], [3, 0, 4], [5, 6, 0]]}, r"traffic_bytes\[0\]\[1\] is a number of 401 digits"),
    ({"traffic_bytes": [1, 2, 3]}, "row 0 is 1; expected a list of 3 numbers"),
    ({"traffic_bytes": "all"}, "traffic_bytes: expected a list of rows, .* got 'all'"),
    ({"traffic_bytes": []}, r"expected a square matrix, got shape \(0,\)"),
    (entries([0, 3, 1]), r"entries\[0\] is \[0, 3, 1\]; expected \[i, j, value\] with i, j in 0..2"),
    (entries([0, 1]), r"entries\[0\] is \[0, 1\]; expected"),
    (entries([0, 1, 1], [0, 2, "x"]), r"entries\[1\] is \[0, 2, 'x'\]; expected"),
    (entries([0, 1, 1], [1, 2, 1], [0, 1, 1]), r"entries\[2\] gives \[0\]\[1\] again, after entries\[0\]; give"),
    (entries([0, 1, 10**400]), r"entries\[0\]\[2\] is a number of 401 digits"),
    (entries([0, 1, -1]), r"traffic_bytes\[0\]\[1\] = -1 is negative"),
    (entries([0, 1, 1], size=4), r"traffic_bytes has shape \(4, 4\), but 3 servers need \(3, 3\)"),
    (entries(size=10**9), r"size is 1000000000; expected 1..20000"),
    (entries(size=0), r"size is 0; expected 1..20000"),
    ({"traffic_bytes": {"size": 3}}, "a sparse matrix is written"),
    ({"traffic_bytes": {"size": 3, "entries": [], "unit": "GB"}}, "a sparse matrix is written"),
]


@for_each(("fields", "message"), FIELDS)
def test_wrong_fields(fields, message):
    with one_line(InstanceError, match=rf"^topology instance 'x': .*{message}"):
        TopologyInstance.from_json(json.dumps(GOOD | fields))


@for_each("field", ["name", "servers", "degree", "link_bandwidth_bytes_per_s", "traffic_bytes"])
def test_missing_fields(field):
    data = {key: value for key, value in GOOD.items() if key != field}
    with pytest.raises(InstanceError, match=f"{field}: is missing"):
        TopologyInstance.from_data(data)


TEXTS = [
    ("", "is empty; expected an? (topology )?instance in JSON"),
    (" \n", "is empty"),
    (json.dumps(GOOD)[:-20], "not valid JSON: .*char"),
    ("{'name': 'x'}", "not valid JSON: .*line 1 column 2"),
    (json.dumps(GOOD).replace("1.0", "NaN"), "not valid JSON: NaN is not a number that JSON knows; .* finite"),
    (json.dumps(GOOD).replace("1.0", "Infinity"), "not valid JSON: Infinity is not a number"),
    (json.dumps(GOOD).replace("1.0", "-Infinity"), "not valid JSON: -Infinity is not a number"),
    (json.dumps(GOOD).replace("1.0", "1e999"), "link_bandwidth_bytes_per_s: Input should be a finite number"),
    (json.dumps(GOOD).replace("[0, 1, 2]], ", "").replace("[3, 0, 4]", "[3, 0, 1e999]"), "= inf is not finite"),
    ("[1, 2]", "expected an object of named fields"),
    ("null", "expected an object of named fields"),
    ('"danoint"', "expected an object of named fields"),
    ("[" * 100_000, "not valid JSON: nested too deeply"),
]


@pytest.mark.parametrize(("text", "message"), TEXTS, ids=range(len(TEXTS)))
def test_wrong_text(tmp_path, text, message):
    path = tmp_path / "bad.json"
    path.write_text(text)
    for read in (TopologyInstance.from_json, lambda _: TopologyInstance.from_file(path), lambda _: load(path)):
        with one_line(InstanceError, match=message):
            read(text)


def test_load_names_the_file(tmp_path):
    path = tmp_path / "bad.json"
    path.write_text("{")
    with pytest.raises(InstanceError, match=r"bad\.json: not valid JSON"):
        load(str(path))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json.gz", b"no gzip", "a.json.gz: cannot be read: "),
        ("a.json.gz", gzip.compress(json.dumps(GOOD).encode(), mtime=0)[:-12], "a.json.gz: cannot be read: "),
        (
            "a.json.gz",
            gzip.compress(json.dumps(GOOD).encode(), mtime=0)[:10] + b"\xff" * 50,
            "a.json.gz: cannot be read: ",
        ),
        ("a.json.gz", b"", "a.json.gz: is empty"),
        ("a.json", gzip.compress(json.dumps(GOOD).encode(), mtime=0), "a.json: cannot be read: .*UTF-8"),
        ("a.json", b"\xff\xfe\x00", "a.json: cannot be read: .*UTF-8"),
        ("a.json", json.dumps(GOOD | {"family": "poetry"}).encode(), "family is 'poetry'; use one of: topology"),
        ("a.json", json.dumps(GOOD | {"family": ["topology"]}).encode(), r"family is \['topology'\]; use one of"),
        ("a.json", b'{"family": "topology", "instance": "x", "links": []}', "x': name: is missing"),
    ],
)
def test_wrong_files(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with one_line(InstanceError, match=message):
        load(path)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(InstanceError, match=r"none\.json: cannot be read: No such file or directory"):
        load(tmp_path / "none.json")
    with pytest.raises(InstanceError, match=r"none\.json: cannot be read: No such file or directory"):
        load(str(tmp_path / "none.json"))
    for folder in (tmp_path, str(tmp_path)):
        with pytest.raises(InstanceError, match="cannot be read: Is a directory"):
            load(folder)


BUILT = {
    "a figure": (lambda: TopologyInstance(**GOOD | {"servers": -1}), InstanceError, "topology instance 'x': servers: "),
    "a missing one": (
        lambda: TopologyInstance(name="x", servers=3, degree=2),
        InstanceError,
        "topology instance 'x': link_bandwidth_bytes_per_s: is missing; every document needs it",
    ),
    "a name that is none": (
        lambda: TopologyInstance(**GOOD, colour="red"),
        InstanceError,
        "topology instance 'x': colour: there is no such field",
    ),
    "a rule": (
        lambda: TopologyInstance(**GOOD | group(members=[0, 9])),
        InstanceError,
        "topology instance 'x': allreduce_groups[0].members contains server 9",
    ),
    "a part": (
        lambda: AllReduceGroup(members=(0, 1), gradient_bytes=-1),
        InstanceError,
        "AllReduceGroup: gradient_bytes: Input should be greater than 0 (got -1)",
    ),
    "a part of another family": (lambda: Job(name="j"), InstanceError, "Job 'j': "),
    "a solution": (lambda: TopologyDesign(links=3), SolutionError, "topology design: instance: is missing"),
}


@pytest.mark.parametrize("case", BUILT)
def test_what_is_built_in_python_is_refused_in_a_line_as_from_a_file(case):
    build, error, told = BUILT[case]
    with one_line(error, told):
        build()


def test_a_wrong_part_is_told_with_its_place_in_the_whole():
    """Validation from data does not stop at the part."""
    with one_line(InstanceError, "topology instance 'x': allreduce_groups[0].gradient_bytes: "):
        TopologyInstance(**GOOD | group(gradient_bytes=-1))
