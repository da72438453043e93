"""The ways in beside the commands: ``python -m``, what takes one name or many, sweeps and reports from Python."""

import subprocess
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest

import ddlopt
from ddlopt.instances import readers
from ddlopt.instances.readers.graphs import flexnet
from ddlopt.instances.readers.told import told
from ddlopt.models.errors import InstanceError, OptionError
from ddlopt.solvers.external import checked
from ddlopt.solvers.options import options_of, with_options

TINY = "topology/tiny-n4-d2"


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "ddlopt", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"ddlopt {ddlopt.__version__}\n"


def test_one_name_and_one_method_are_as_good_as_lists():
    (listed,) = ddlopt.compare([TINY], ["expander"])
    (single,) = ddlopt.compare(TINY, "expander")
    assert (single.instance, single.method, single.objective) == (listed.instance, "expander", listed.objective)
    (auto,) = ddlopt.compare(ddlopt.load(TINY))
    assert auto.method == ddlopt.default_method(TINY)


def test_results_become_a_table():
    results = ddlopt.compare(TINY, ["expander", "ideal-switch"], seed=3)
    table = ddlopt.frame(results)
    assert list(table["method"]) == ["expander", "ideal-switch"]
    assert list(table["objective"]) == [result.objective for result in results]
    assert list(table["seed"]) == [3, 3]
    assert not {"trace", "details", "provenance"} & set(table.columns)
    assert len(ddlopt.frame(results[0])) == 1
    with pytest.raises(OptionError, match="frame takes the file of a store or results of solves, got int"):
        ddlopt.frame([3])


def test_a_sweep_its_table_and_its_report_from_python(tmp_path):
    store, seen = tmp_path / "results.sqlite", []
    options = {"seeds": (0, 1), "time_limit": 30.0, "jobs": 1}
    table = ddlopt.bench(TINY, store, ["expander", "ideal-switch"], on_result=seen.append, **options)
    assert (len(table), len(seen)) == (4, 4)
    assert set(table["method"]) == {"expander", "ideal-switch"}
    again = ddlopt.bench(TINY, store, ["expander", "ideal-switch"], on_result=seen.append, **options)
    assert (len(again), len(seen)) == (4, 4), "nothing is done twice"
    assert ddlopt.frame(store).equals(again)
    first = ddlopt.report(store, tmp_path / "report", title="Mine", pictures=0, save_charts=["svg"])
    assert first == tmp_path / "report" / "index.html"
    assert "Mine" in first.read_text()
    assert (tmp_path / "report" / "charts" / "topology-quality.svg").is_file()


def test_the_help_of_convert_names_every_format_and_its_options(call):
    code, out, _ = call("convert", "--help")
    assert code == 0
    text = " ".join(out.split())
    for name in readers.FORMATS:
        options = readers.options_of(name)
        assert f" {name}: {next(iter(options), 'no options')}" in text
        assert all(option in text for option in options)
    assert "throughputs (needed)" in text


@pytest.mark.parametrize("name", readers.FORMATS)
def test_the_help_of_a_format_tells_what_its_options_mean(call, name):
    known = told(name)
    assert [option.name for option in known] == list(readers.options_of(name))
    assert [option.name for option in known if not option.meaning.strip("; ").removesuffix("needed")] == []
    code, out, _ = call("convert", "--from", name, "--help")
    assert code == 0
    text = " ".join(out.split())
    assert all(f" {option.name}: " in text or f" {option.name}=" in text for option in known)
    assert not any(mark in text for mark in ("``", ":class:", ":func:", ":data:", "None:", "Likewise"))


def test_the_help_of_a_format_has_defaults_units_and_words(call):
    text = " ".join(call("convert", "--from=philly", "--help")[1].split())
    assert "slot_s=3600: Length of a slot (in seconds)" in text
    assert "virtual_cluster: By default all" in text
    assert "hours, seed may also be given as --virtual-cluster" in text
    text = " ".join(call("convert", "--from", "espresso", "--help")[1].split())
    assert "intra=nvlink: What joins the GPUs of a node (one of nvlink, pcie)" in text
    assert "compressors: name[:parameter][/scope][/cpu]" in " ".join(call("convert", "--from", "onnx", "-h")[1].split())
    assert "It takes no options." in call("convert", "--from", "miplib", "--help")[1]
    assert "throughputs: The table; needed" in " ".join(call("convert", "--from", "gavel", "--help")[1].split())


def test_the_example_of_the_help_works_for_flexnet_graphs(monkeypatch, tmp_path):
    traffic = np.ones((8, 8)) - np.eye(8)
    fields = {"servers": 8, "link_bandwidth_bytes_per_s": 1.0, "traffic_bytes": traffic, "compute_s": 1.0}
    monkeypatch.setattr(flexnet, "_fields", lambda _: fields)
    file = tmp_path / "job.fbuf"
    file.write_bytes(b"anything")
    plain = ddlopt.convert(file, "flexnet")
    assert (plain.name, plain.degree, plain.optics, plain.parallel_links) == ("job", 4, "one_way", True)
    made = ddlopt.convert(
        file, "flexnet", optics="duplex", parallel_links=False, host_forwarding=False, overlap="full", name="mine"
    )
    assert (made.name, made.optics, made.parallel_links) == ("mine", "duplex", False)
    assert (made.host_forwarding, made.overlap) == (False, "full")
    with pytest.raises(OptionError, match="optics is 'glass'; use one of: one_way, duplex"):
        ddlopt.convert(file, "flexnet", optics="glass")
    monkeypatch.undo()
    with pytest.raises(InstanceError, match="is no FlexNet task graph"):
        ddlopt.convert(file, "flexnet", optics="duplex")


@dataclass(frozen=True)
class Mine:
    """A method of another package, with an option."""

    least: int = 3
    name: str = field(default="mine", init=False)
    family: str = field(default="topology", init=False)

    def refuses(self, instance):
        return None

    def solve(self, instance, limits, seed=0, progress=None, start=None):
        raise NotImplementedError


def test_options_of_a_method_of_another_package_reach_it():
    asked = with_options(checked(Mine()), "mine:least=7")
    assert options_of(asked) == {"least": 7}
    assert asked.name == "mine:least=7"
    with pytest.raises(OptionError, match="method 'mine' has no option 'most=1'; write NAME=VALUE, it has: least"):
        with_options(checked(Mine()), "mine:most=1")
