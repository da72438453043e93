"""Best known solutions: as good as their records say, and replaced by better ones only."""

import dataclasses
import datetime

import pytest
from filelock import FileLock, Timeout
from library_cases import TINY, library_of_one, ring_design
from refusals import one_line

import ddlopt
from ddlopt.instances import best, load, names, record, store_best
from ddlopt.instances.library import best_file, library_folder, records
from ddlopt.instances.library import store_best as keep
from ddlopt.instances.library.records import COMBINATORIAL, UNKNOWN, Run
from ddlopt.instances.library.store_best import settle, store_bound
from ddlopt.models import catalogue, files
from ddlopt.models.catalogue import FAMILY_NAMES
from ddlopt.models.contracts import Evaluation
from ddlopt.models.errors import InstanceError, OptionError, SolutionError, UnknownNameError
from ddlopt.models.files import write_whole
from ddlopt.models.topology import TopologyInstance

RUN = Run(method="by-hand", seed=3, version="0.0.1", date=datetime.date(2026, 1, 2), seconds=4.5)


# The library as it is ------------------------------------------------------------------------------------------------


def test_records_are_of_bundled_instances_and_as_they_are_written():
    for family in FAMILY_NAMES:
        known = records.read(family)
        assert {f"{family}/{stem}" for stem in known} <= set(names(family))
        path = library_folder(family) / "records.json"
        assert not known or path.read_text(encoding="utf-8") == records.text_of(known)


# What is kept --------------------------------------------------------------------------------------------------------


@pytest.fixture
def own_library(tmp_path, monkeypatch):
    """The family's folder of a library of one instance."""
    return library_of_one(tmp_path, monkeypatch)


def files_in(folder):
    return sorted(file.name for file in folder.iterdir() if file.name != ".lock")


def test_only_better_solutions_are_stored(own_library):
    single, double = ring_design(1), ring_design(2)
    assert best("tiny-n4-d2") is None
    assert store_best("tiny-n4-d2", single)
    assert best("tiny-n4-d2").links == single.links
    assert best("tiny-n4-d2").instance_digest == load("tiny-n4-d2").digest
    assert store_best("topology/tiny-n4-d2", double)
    assert not store_best("tiny-n4-d2", double)
    assert not store_best("tiny-n4-d2", single)
    assert best("tiny-n4-d2").links == double.links
    assert files_in(own_library) == ["records.json", "tiny-n4-d2.best.json", "tiny-n4-d2.json"]


def test_large_solutions_are_compressed(own_library, monkeypatch):
    assert store_best("tiny-n4-d2", ring_design(1))
    monkeypatch.setattr(keep, "_LARGEST_PLAIN_BYTES", 100)
    assert store_best("tiny-n4-d2", ring_design(2))
    assert files_in(own_library) == ["records.json", "tiny-n4-d2.best.json.gz", "tiny-n4-d2.json"]
    assert best("tiny-n4-d2").links == ring_design(2).links
    packed = (own_library / "tiny-n4-d2.best.json.gz").read_bytes()
    assert packed[4:8] == bytes(4), "a time stamp would make the file differ from run to run"


def test_broken_or_foreign_solutions_are_refused(own_library):
    good = ring_design(2)
    with pytest.raises(SolutionError, match="'topology/tiny-n4-d2': the solution is not feasible: out_degree at"):
        store_best("tiny-n4-d2", ring_design(3))
    with pytest.raises(SolutionError, match="was made for instance 'tiny-n4-d2'"):
        store_best("tiny-n4-d2", ring_design(2, instance_digest="0" * 64))
    with pytest.raises(SolutionError, match="not feasible: "):
        store_best("tiny-n4-d2", good.model_copy(update={"routes": ()}))
    assert best("tiny-n4-d2") is None


@pytest.mark.parametrize(
    ("sense", "objectives", "kept"),
    [
        ("minimize", (3.0, 4.0, 3.0 - 1e-10, 2.0), (True, False, False, True)),
        ("maximize", (3.0, 2.0, 3.0 + 1e-10, 4.0), (True, False, False, True)),
        ("maximize", (-3.0, -4.0, -3.0 + 1e-10, -2.0, 0.0, 1.0), (True, False, False, True, True, True)),
        ("minimize", (1.0, 0.0, -1.0, -0.5), (True, True, True, False)),
    ],
)
def test_what_is_better_depends_on_the_sense(own_library, monkeypatch, sense, objectives, kept):
    """The objective of a solution is what its first link's count says."""

    def evaluate(instance, solution, exact=False):
        return Evaluation(objectives[solution.links[0][2]])

    told = dataclasses.replace(catalogue.family("topology"), evaluate=evaluate, bound=lambda _: None)
    monkeypatch.setattr(keep, "family", lambda name: told)
    monkeypatch.setattr(TopologyInstance, "sense", sense)
    assert tuple(store_best("tiny-n4-d2", ring_design(count)) for count in range(len(objectives))) == kept
    assert objectives[best("tiny-n4-d2").links[0][2]] == (max if sense == "maximize" else min)(objectives)


def test_an_infeasible_best_gives_way(own_library):
    (own_library / "tiny-n4-d2.best.json").write_text(ring_design(3).to_json())
    assert store_best("tiny-n4-d2", ring_design(1))
    assert best("tiny-n4-d2").links == ring_design(1).links


def test_nothing_is_left_of_a_failed_write(own_library, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(OptionError, match="cannot be written: disk full"):
        store_best("tiny-n4-d2", ring_design(1))
    assert files_in(own_library) == ["tiny-n4-d2.json"]


# Records -------------------------------------------------------------------------------------------------------------


def test_a_record_tells_who_found_the_solution_and_what_bounds_it(own_library):
    assert record(TINY) is None
    assert store_best(TINY, ring_design(2), RUN)
    known = record("tiny-n4-d2")
    exact = catalogue.family("topology").evaluate(load(TINY), best(TINY), exact=True)
    assert known.instance_digest == load(TINY).digest
    assert known.found.model_dump(include=set(Run.model_fields)) == RUN.model_dump()
    assert known.found.objective == float(exact.objective)
    assert known.found.digest == records.digest_of(best_file(TINY).read_text())
    assert known.bound.method == COMBINATORIAL
    assert known.bound.value == catalogue.family("topology").bound(load(TINY))
    text = (own_library / "records.json").read_text()
    assert text == records.text_of(records.read("topology"))
    assert len(text.splitlines()) == 3


def test_without_a_run_the_day_and_version_are_noted(own_library):
    store_best(TINY, ring_design(2))
    found = record(TINY).found
    assert (found.method, found.seed, found.seconds) == (UNKNOWN, None, None)
    assert found.version == ddlopt.__version__
    assert abs(found.date - datetime.datetime.now(datetime.UTC).date()) <= datetime.timedelta(days=1)


def test_a_run_that_finds_as_good_a_solution_is_noted_where_none_was(own_library):
    store_best(TINY, ring_design(2))
    assert not store_best(TINY, ring_design(1), RUN), "worse"
    assert record(TINY).found.method == UNKNOWN
    assert not store_best(TINY, ring_design(2), RUN)
    assert record(TINY).found.method == "by-hand"
    assert not store_best(TINY, ring_design(2), RUN.model_copy(update={"method": "later"}))
    assert record(TINY).found.method == "by-hand"


def test_only_tighter_bounds_are_noted(own_library):
    store_best(TINY, ring_design(1))
    objective, weak = record(TINY).found.objective, record(TINY).bound.value
    assert weak < objective - 1
    assert not store_bound(TINY, weak, RUN)
    assert not store_bound(TINY, weak * (1 + 1e-10), RUN), "rounding"
    assert store_bound(TINY, weak + 0.5, RUN)
    assert not store_bound(TINY, weak + 0.25, RUN)
    assert record(TINY).bound == records.Bound(value=weak + 0.5, **RUN.model_dump())
    assert store_bound(TINY, objective * (1 + 1e-8), RUN), "within a solver's tolerance"
    assert record(TINY).bound.value == objective
    with pytest.raises(SolutionError, match=r"solution of .* is better than the bound .*by-hand.*; one of the two is"):
        store_bound(TINY, objective * 1.01, RUN)
    assert record(TINY).bound.value == objective


def test_a_bound_as_tight_is_noted_where_the_record_only_says_who_was_asked(own_library):
    store_best(TINY, ring_design(1))
    asked = RUN.model_copy(update={"method": "exact"})
    tight = record(TINY).bound.value + 0.5
    assert store_bound(TINY, tight, asked)
    assert not store_bound(TINY, tight, asked), "says no more"
    assert not store_bound(TINY, tight - 0.1, RUN), "not as tight"
    assert store_bound(TINY, tight * (1 - 1e-11), asked.model_copy(update={"leaf": "milp"}))
    assert (record(TINY).bound.value, record(TINY).bound.by) == (tight, "milp, asked by exact")
    assert not store_bound(TINY, tight, RUN), "it is said already"


def test_a_solution_that_refutes_the_bound_is_not_stored(own_library):
    store_best(TINY, ring_design(1))
    store_bound(TINY, record(TINY).found.objective, RUN)
    with pytest.raises(SolutionError, match="is better than the bound"):
        store_best(TINY, ring_design(2))
    assert best(TINY).links == ring_design(1).links


def test_a_worse_solution_contradicts_nothing(own_library):
    store_best(TINY, ring_design(2), RUN)
    assert not store_best(TINY, ring_design(1))
    assert record(TINY).found.method == "by-hand"


def test_of_a_maximised_objective_the_smaller_bound_is_tighter(own_library, monkeypatch):
    told = dataclasses.replace(
        catalogue.family("topology"), evaluate=lambda *_, **__: Evaluation(3.0), bound=lambda _: 5.0
    )
    monkeypatch.setattr(keep, "family", lambda name: told)
    monkeypatch.setattr(TopologyInstance, "sense", "maximize")
    store_best(TINY, ring_design(1))
    assert record(TINY).bound.value == 5.0
    assert not store_bound(TINY, 6.0, RUN)
    assert store_bound(TINY, 4.0, RUN)
    assert store_bound(TINY, 3.0 - 1e-8, RUN)
    assert record(TINY).bound.value == 3.0
    with pytest.raises(SolutionError, match="better than the bound"):
        store_bound(TINY, 2.9, RUN)


def test_a_record_of_another_instance_is_none(own_library):
    store_best(TINY, ring_design(2), RUN)
    path = own_library / "tiny-n4-d2.json"
    path.write_text(path.read_text().replace('"degree": 2', '"degree": 3'))
    assert record(TINY) is None
    with pytest.raises(SolutionError, match="was made for instance 'tiny-n4-d2'"):
        settle(TINY)
    assert store_best(TINY, ring_design(1)), "the stored solution is that of other data"
    assert record(TINY).instance_digest == load(TINY).digest
    assert record(TINY).found.method == UNKNOWN


def test_records_of_instances_that_are_gone_are_dropped(own_library):
    store_best(TINY, ring_design(1))
    known = records.read("topology")
    records.write("topology", known | {"gone": known["tiny-n4-d2"]})
    store_best(TINY, ring_design(2))
    assert list(records.read("topology")) == ["tiny-n4-d2"]


def test_a_record_says_nothing_of_another_solution(own_library):
    store_best(TINY, ring_design(2), RUN)
    path = best_file(TINY)
    path.write_text(path.read_text() + " ")
    assert record(TINY).found is None
    assert record(TINY).bound is not None
    assert settle(TINY)
    assert record(TINY).found.method == UNKNOWN
    assert not settle(TINY)


def test_settling_takes_the_better_combinatorial_bound(own_library, monkeypatch):
    store_best(TINY, ring_design(1), RUN)
    before = record(TINY)
    told = dataclasses.replace(catalogue.family("topology"), bound=lambda _: before.bound.value + 0.5)
    monkeypatch.setattr(keep, "family", lambda name: told)
    assert settle(TINY)
    assert record(TINY).bound.value == before.bound.value + 0.5
    assert record(TINY).found == before.found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Invalid JSON"),
        ("[]", "Input should be an object"),
        ('{"a": {"instance_digest": "0", "found": {"objective": 1}}}', "a.found.digest: Field required"),
        ('{"a": {"instance_digest": "0", "colour": 1}}', "a.colour: Extra inputs"),
    ],
)
def test_a_damaged_file_of_records_is_one_line(own_library, text, message):
    (own_library / "records.json").write_text(text)
    with one_line(InstanceError, match=f"records.json: .*{message}"):
        record(TINY)


class Crash(BaseException):
    pass


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("writes", [0, 1])
def test_a_crash_between_two_files_leaves_a_library_that_holds(own_library, monkeypatch, writes, large):
    """First the solution is written, then the record of it."""
    store_best(TINY, ring_design(1))
    before = record(TINY)
    monkeypatch.setattr(keep, "_LARGEST_PLAIN_BYTES", 100 if large else 10**6)
    done = []

    def write(path, content):
        if len(done) == writes:
            raise Crash
        done.append(path.name)
        write_whole(path, content)

    with monkeypatch.context() as crashing:
        crashing.setattr(files, "write_whole", write)
        crashing.setattr(records, "write_whole", write)
        with pytest.raises(Crash):
            store_best(TINY, ring_design(2), RUN)
    assert (best(TINY).links == ring_design(2).links) == (writes == 1)
    known = record(TINY)
    assert known.bound == before.bound
    assert known.found == (before.found if writes == 0 else None)
    assert store_best(TINY, ring_design(2), RUN) == (writes == 0)
    assert record(TINY).found.method == "by-hand"
    assert record(TINY).found.digest == records.digest_of_best(TINY)
    assert best(TINY).links == ring_design(2).links


def test_two_processes_do_not_lose_each_others_records(own_library, monkeypatch):
    """While one judges, the other waits."""
    seen = []

    def judged(*arguments):
        lock = FileLock(own_library / ".lock", timeout=0)
        try:
            with lock:
                seen.append("free")
        except Timeout:
            seen.append("held")

    monkeypatch.setattr(keep, "_objective_of_best", judged)
    store_best(TINY, ring_design(2))
    assert seen == ["held"]


def test_a_library_that_cannot_be_written_to_is_one_line(own_library, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(OptionError, match="is read-only"):
        store_best(TINY, ring_design(2))
    assert files_in(own_library) == ["tiny-n4-d2.json"]


@pytest.mark.parametrize("call", [record, settle, lambda name: store_bound(name, 1.0, RUN)])
def test_records_are_of_bundled_instances(call):
    with pytest.raises(UnknownNameError, match="no instance or file 'topology/danoin'; do you mean topology/danoint"):
        call("topology/danoin")
