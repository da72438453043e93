"""The library: names, files, schema; and the index says what the instances say."""

import gzip
import json
from itertools import groupby

import pytest
from library_cases import TINY_TEXT, ring_design

from ddlopt import instances
from ddlopt.analysis.listing import index_data, index_text, listing_file
from ddlopt.instances import best, find, index, library, load, names, schema, store_best
from ddlopt.instances.library.make import main, text_of
from ddlopt.models.catalogue import FAMILY_NAMES, family, problems
from ddlopt.models.errors import InstanceError, UnknownNameError
from ddlopt.models.problem import path_of
from ddlopt.models.topology import TopologyDesign, TopologyInstance

JOBS = ("dlrm", "bert", "candle", "ncf", "resnet50", "vgg16")


def test_make_writes_the_families_it_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("ddlopt.instances.library.make.library_folder", lambda family: tmp_path)
    monkeypatch.setattr("sys.argv", ["make", "poetry"])
    with pytest.raises(SystemExit):
        main()
    assert "there is no family 'poetry'; there are: topology" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr("sys.argv", ["make", "topology"])
    main()
    assert {file.stem for file in tmp_path.iterdir()} == {name.split("/")[1] for name in names("topology")}


def test_what_the_library_must_hold():
    wanted = {"danoint"} | {f"all-to-all-n{n}-d2" for n in range(5, 17)}
    wanted |= {f"all-to-all-n{n}-d{d}" for n in (8, 12, 16) for d in (3, 4)}
    wanted |= {f"{job}-n{n}-d4" for job in JOBS for n in (12, 16, 128)} | {f"{job}-n12-d4-duplex" for job in JOBS}
    wanted |= {"dlrm-n16-d4-duplex", "dlrm-n128-d4-duplex", "dlrm-n128-d8", "dlrm-stress-n128-d4"}
    assert {f"topology/{name}" for name in wanted} <= set(names())
    topologies = [each for each in map(load, names("topology")) if isinstance(each, TopologyInstance)]
    assert {instance.optics for instance in topologies} == {"one_way", "duplex"}
    assert {instance.overlap for instance in topologies} == {"none", "full"}
    assert {instance.host_forwarding for instance in topologies} == {True, False}


def test_danoint_is_the_benchmark():
    danoint = load("danoint")
    assert danoint.traffic_bytes.sum() == 552
    assert (danoint.servers, danoint.degree, danoint.parallel_links) == (8, 2, False)
    assert danoint.iteration_time_s(65.6666667) == 65.6666667


def test_names_are_in_the_order_of_their_numbers():
    stems = [name for name in names("topology") if name.startswith("topology/all-to-all")]
    assert stems.index("topology/all-to-all-n9-d2") < stems.index("topology/all-to-all-n10-d2")
    assert names() == tuple(name for family in FAMILY_NAMES for name in names(family))
    assert not any(".best" in name for name in names())


def test_names_with_and_without_family():
    assert find("danoint") == find("topology/danoint") == "topology/danoint"
    assert find("danoin") is None
    assert load("danoint") == load("topology/danoint")


def test_a_name_in_two_families_is_that_of_the_first(tmp_path, monkeypatch):
    for each in ("topology", "twin"):
        (tmp_path / each).mkdir()
        (tmp_path / each / "same.json").write_text(TINY_TEXT)
    (tmp_path / "twin" / "other.json").write_text(TINY_TEXT)
    monkeypatch.setattr(library, "FAMILY_NAMES", ("topology", "twin"))
    monkeypatch.setattr(library, "library_folder", lambda family: tmp_path / family)
    assert find("same") == "topology/same"
    assert find("twin/same") == "twin/same"
    assert find("other") == "twin/other"
    with pytest.raises(UnknownNameError, match="'sam'; do you mean topology/same or twin/same"):
        load("sam")


@pytest.mark.parametrize("call", [load, best, lambda name: store_best(name, None)])
def test_unknown_name_offers_close_ones(call):
    with pytest.raises(UnknownNameError, match="no instance or file 'topology/danoin'; do you mean topology/danoint"):
        call("topology/danoin")
    with pytest.raises(UnknownNameError, match="no instance or file 'zzz'; the library has topology/"):
        call("zzz")


def test_unknown_family():
    with pytest.raises(UnknownNameError, match="no family 'poetry'; there are: topology"):
        names("poetry")
    with pytest.raises(UnknownNameError, match="no family 'poetry'"):
        schema("poetry")


def test_load_from_files(tmp_path):
    danoint = load("danoint")
    plain, packed = tmp_path / "a.json", tmp_path / "b.json.gz"
    plain.write_text(danoint.to_json())
    packed.write_bytes(gzip.compress(text_of(danoint).encode()))
    assert load(plain) == load(str(packed)) == danoint


# Schema ---------------------------------------------------------------------------------------------------------------


def test_schema_names_every_field():
    document = schema("topology")
    assert document["$schema"].startswith("https://json-schema.org/")
    design = document["$defs"]["TopologyInstance"]
    assert {"$ref": "#/$defs/TopologyInstance"} in document["anyOf"]
    assert set(design["properties"]) == set(TopologyInstance.model_fields)
    assert set(design["required"]) == {"name", "servers", "degree", "link_bandwidth_bytes_per_s", "traffic_bytes"}
    answers = schema("topology", solution=True)["$defs"]
    assert set(answers["TopologyDesign"]["properties"]) == set(TopologyDesign.model_fields)


def test_schema_refuses_what_reading_refuses():
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema checks files against the published schema")
    validator = jsonschema.Draft202012Validator(schema("topology"))
    good = json.loads(TINY_TEXT)
    validator.validate(good)
    for field, bad in [("servers", 1), ("degree", 0), ("optics", "fibre"), ("compute_s", -1), ("colour", 1)]:
        assert not validator.is_valid(good | {field: bad}), field
        with pytest.raises(InstanceError):
            TopologyInstance.from_data(good | {field: bad})


def test_schema_of_solutions_accepts_a_design():
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema checks files against the published schema")
    validator = jsonschema.Draft202012Validator(schema("topology", solution=True))
    validator.validate(json.loads(ring_design(2).to_json()))
    assert not validator.is_valid(json.loads(ring_design(2).to_json()) | {"links": [[0, 1]]})


ANEW = "run python -m ddlopt.analysis.records --index"


def smallest():
    """The two smallest instances of each problem."""
    by_problem = sorted(index.read().instances.values(), key=lambda each: (each.problem, each.size))
    return [each.name for _, group in groupby(by_problem, key=lambda each: each.problem) for each in list(group)[:2]]


def test_it_has_every_instance_and_problem():
    known = index.read()
    assert list(known.instances) == list(instances.names()), ANEW
    told = {path: (each.title, each.counts, each.limited_by) for path, each in problems().items()}
    assert {path: (each.title, each.counts, each.limited_by) for path, each in known.problems.items()} == told, ANEW
    assert list(known.problems) == list(problems())
    assert {each.problem for each in known.instances.values()} == set(problems())


def test_the_problems_are_those_of_the_families():
    kinds = {name: family(name).instance.variants for name in FAMILY_NAMES}
    named = {f"{name}/{problem}" for name, variants in kinds.items() for problem in variants}
    # A family's folder may itself be the room of a problem, the only one or the first one.
    assert set(problems()) - named == {"topology", "scheduling", "codesign"}


def test_it_says_what_the_instances_say():
    committed = json.loads(listing_file().read_text(encoding="utf-8"))["instances"]
    anew = json.loads(index_text(index_data(smallest())))["instances"]
    assert {name: committed[name] for name in anew} == anew, ANEW


@pytest.mark.slow
def test_it_is_written_as_it_stands():
    assert listing_file().read_text(encoding="utf-8") == index_text(index_data()), ANEW


def test_what_is_read_is_what_is_written():
    listed = index.read().instances["topology/danoint"]
    known, instance = instances.record("topology/danoint"), instances.load("topology/danoint")
    assert (listed.family, listed.problem, listed.size) == ("topology", path_of(instance), 8)
    assert (listed.objective, listed.bound) == (known.found.objective, known.bound.value)
    assert (listed.found_by, listed.bound_by) == (known.found.method, known.bound.method)
    assert listed.proven
    assert "branch-and-bound" in listed.methods
    assert "circulant" not in listed.methods


def test_licences():
    listed = index.read().instances
    assert listed["topology/danoint"].licence == "Apache-2.0"
    assert listed["aggregation/abilene-congestion"].licence == "CC-BY-4.0"


def test_without_a_file_it_is_empty(tmp_path):
    assert index.read(tmp_path / "index.json") == index.Index({}, {})
