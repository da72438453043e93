"""Files in formats of others that nobody wrote on purpose: an instance, or one line; and options likewise.

`pytest tests/robustness/test_mutated_files.py -m slow -s` prints how many were tried, refused, and passed.
"""

import json
import runpy
from collections import Counter
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from robustness.mutations import ODD, mutated_bytes, volume
from volume import slow

from ddlopt.instances import readers
from ddlopt.models.errors import DdloptError
from ddlopt.solvers import catalogue
from ddlopt.solvers.options import options_of

DEFAULT, MANY = 3, 1000
TESTS = Path(__file__).parents[1] / "instances"


@cache
def of(name):
    """What the tests of a reader define."""
    return runpy.run_path(str(TESTS / name))


def samples():
    """A small file of each format: format, name of the file, bytes, options, and a file beside it."""
    jobs, zoo = of("readers/test_job_readers.py"), of("readers/test_topology_zoo.py")
    rows = "".join("\t".join(row) + "\n" for row in jobs["GAVEL"])
    espresso = of("readers/test_espresso_reader.py")
    yield "miplib", "small.mps", of("readers/test_readers.py")["MPS"], {}, None
    yield "philly", "small.csv", of("readers/test_trace_readers.py")["PHILLY"], {}, None
    yield "openb", "pods.csv", jobs["OPENB"], {"nodes": "beside"}, jobs["NODES"]
    yield "gavel", "small.trace", rows, {"throughputs": "beside"}, json.dumps(jobs["TABLE"])
    yield "jobs-csv", "jobs.csv", "name,arrival_s,workers,duration_s\nb,4000,1,3600\na,0,4,1800\n", {}, None
    yield "espresso", "net.json", json.dumps({"model": "Net", "tensors": espresso["TENSORS"]}), {}, None
    yield "espresso", "model_tensor.py", espresso["PUBLISHED"], {"model": "Net", "intra": "pcie"}, None
    graph = json.dumps(of("readers/test_dnn_partitioning.py")["graph"]())
    yield "dnn-partitioning", "graph.json", graph, {}, None
    yield "pipedream", "graph.txt", of("readers/test_pipedream.py")["PROFILE"], {}, None
    yield "iopddl", "example.json", json.dumps(of("readers/test_iopddl.py")["EXAMPLE"]), {}, None
    yield "libffm", "clicks.ffm", of("readers/test_libffm.py")["LOG"], {"batch": 1, "workers": 2, "memory": 0.5}, None
    yield "ina-routing", "net.json", json.dumps(of("readers/test_ina_routing.py")["layout"](True)), {}, None
    network = {"jobs": 1, "workers": 1, "bandwidth_bytes_per_s": 7.0}
    yield "topology-zoo", "net.gml", zoo["GML"], network, None
    yield "topology-zoo", "net.graphml", zoo["GRAPHML"], network, None
    yield "topology-zoo-gossip", "net.gml", zoo["GML"], {}, None
    if find_spec("onnx"):
        model = of("readers/test_onnx.py")["language_model"]()
        yield "onnx", "net.onnx", model, {"dims": ("sequence=5",)}, None
        yield "onnx-topology", "net.onnx", model, {"dims": ("sequence=5",)}, None
        yield "onnx-deployment", "net.onnx", model, {"dims": ("sequence=5",)}, None


SAMPLES = {
    f"{name}-{file}": (name, file, text.encode() if isinstance(text, str) else text, options, beside)
    for name, file, text, options, beside in samples()
}


def one_line(problem):
    """What is said of a refusal."""
    text = str(problem)
    assert text
    assert text.isprintable()
    return "refused"


def read(source_format, path, options):
    try:
        instance = readers.convert(path, source_format, **options)
    except DdloptError as problem:
        return one_line(problem)
    assert type(instance).from_json(instance.to_json()).digest == instance.digest
    return "passed"


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_mutated_is_good(tmp_path, name):
    source_format, file, text, options, beside = SAMPLES[name]
    (tmp_path / file).write_bytes(text)
    (tmp_path / "beside").write_text(beside or "")
    options = {key: tmp_path / "beside" if value == "beside" else value for key, value in options.items()}
    assert read(source_format, tmp_path / file, options) == "passed"


@pytest.mark.parametrize("examples", [DEFAULT, slow(MANY)])
@pytest.mark.parametrize("name", SAMPLES)
def test_mutated_files(tmp_path, name, examples):
    source_format, file, text, options, beside = SAMPLES[name]
    path, other, counts = tmp_path / file, tmp_path / "beside", Counter()
    options = {key: other if value == "beside" else value for key, value in options.items()}

    @volume(examples)
    @given(st.data())
    def holds(data):
        contents = [text, (beside or "").encode()]
        which = data.draw(st.integers(0, 1)) if beside else 0
        contents[which] = data.draw(mutated_bytes(contents[which]))
        for place, content in zip((path, other), contents, strict=True):
            place.write_bytes(content)
        counts[read(source_format, path, options)] += 1

    holds()
    print(f"\nfiles of {name}: {dict(counts)}")


@pytest.mark.parametrize("examples", [DEFAULT, slow(300)])
@pytest.mark.parametrize("name", SAMPLES)
def test_odd_options_of_readers(tmp_path, name, examples):
    source_format, file, text, options, beside = SAMPLES[name]
    path, other, counts = tmp_path / file, tmp_path / "beside", Counter()
    path.write_bytes(text)
    other.write_text(beside or "")
    usual = {key: other if value == "beside" else value for key, value in options.items()}
    known = [*readers.options_of(source_format), "unknown"]

    @volume(examples)
    @given(st.sampled_from(known), st.sampled_from(ODD))
    def holds(option, value):
        counts[read(source_format, path, usual | {option: value})] += 1

    holds()
    print(f"\noptions of {name}: {dict(counts)}")


METHODS = sorted({(entry.family, entry.name) for entry in catalogue.own_entries()})


def test_odd_options_of_methods():
    """One odd value, unknown name or half a setting of each option of each method of ours."""
    odd_options(METHODS, 1)


@pytest.mark.slow
def test_many_odd_options_of_methods():
    odd_options(METHODS, 40)


def odd_options(methods, examples):
    counts = Counter()
    texts = [json.dumps(value) for value in ODD] + ["1e999", "NaN", "=", "'", "x,y", "1,2", "\x1b[31m", "{", "1" * 5000]

    @volume(examples)
    @given(st.data())
    def holds(data):
        for family, name in methods:
            options = [*options_of(catalogue.method(name, family)), "unknown", ""]
            option = data.draw(st.sampled_from(options))
            setting = f"{option}={data.draw(st.sampled_from(texts))}"
            asked = f"{name}:{setting}" if data.draw(st.booleans()) else f"{name}:{setting},{option}"
            try:
                catalogue.method(asked, family)
            except DdloptError as problem:
                counts[one_line(problem)] += 1
            else:
                counts["passed"] += 1

    holds()
    print(f"\noptions of methods: {dict(counts)}")
