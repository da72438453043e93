"""When records were last challenged, and by which code."""

import pytest
from library_cases import TINY, library_of_one, ring_design

from ddlopt import instances
from ddlopt.analysis import challenges, records
from ddlopt.instances.library.records import Run
from ddlopt.instances.library.store_best import settle, store_best, store_bound, store_challenge

CODE = '''"""What it is for."""

from ddlopt.models.topology.instance import TopologyInstance  # why


def double(x: int) -> int:
    """Twice."""
    # as much
    return 2 * x


LIMIT = 3
"""Of something."""
'''


@pytest.fixture
def own_library(tmp_path, monkeypatch):
    folder = library_of_one(tmp_path, monkeypatch)
    store_best(TINY, ring_design(1), Run.now("m"))
    return folder


def digest(tmp_path, text):
    file = tmp_path / "module.py"
    file.write_text(text)
    challenges._read.cache_clear()
    return challenges._read(file)[0]


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("Twice.", "Two times, and\n    so on.", True),
        ("    # as much\n", "", True),
        ("What it is for.", "Something else.", True),
        ("Of something.", "Of another thing.", True),
        ("\n\n\n", "\n", True),
        ("2 * x", "3 * x", False),
        ("LIMIT = 3", "LIMIT = 4", False),
    ],
)
def test_what_is_said_of_code_makes_no_difference(tmp_path, before, after, same):
    assert before in CODE
    assert (digest(tmp_path, CODE) == digest(tmp_path, CODE.replace(before, after))) is same


def test_code_goes_as_far_as_it_imports(monkeypatch):
    """Co-design calls methods for topologies, topology none for strategies; both call HiGHS."""
    met = {}
    read = challenges._read
    monkeypatch.setattr(challenges, "_read", lambda file: met.setdefault(file, read(file)))
    challenges.code_of.cache_clear()
    files = {}
    for problem in ("codesign", "topology", "aggregation/tree"):
        met.clear()
        challenges.code_of(problem)
        files[problem] = {file.relative_to(challenges._ROOT).as_posix() for file in met}
    challenges.code_of.cache_clear()
    exchange = "solvers/topology/link_exchange/link_exchange.py"
    assert {exchange, "solvers/codesign/methods.py"} <= files["codesign"]
    assert exchange in files["topology"]
    assert not any("codesign" in file for file in files["topology"])
    assert not any("aggregation/graph/" in file for file in files["aggregation/tree"])
    assert all("solvers/backends/highs.py" in each or "solvers/backends/__init__.py" in each for each in files.values())


def test_a_record_is_fresh_until_the_code_changes(own_library, monkeypatch):
    instance = instances.load(TINY)

    def fresh(seconds=0.0):
        return challenges.is_fresh(instances.record(TINY), instance, seconds)

    (told,) = challenges.stale([TINY])
    assert told == f"{TINY}: never challenged"
    store_challenge(TINY, challenges.challenge_of(instance, ["a", "b"], 10.0))
    assert list(challenges.stale([TINY])) == []
    assert fresh(10.0)
    assert not fresh(11.0)
    monkeypatch.setattr(challenges, "code_of", lambda problem: "other")
    (told,) = challenges.stale([TINY])
    assert "by a, b of ddlopt" in told
    assert told.endswith("10 s, other code than now")


def test_what_is_settled_needs_no_challenge(own_library):
    store_best(TINY, ring_design(2), Run.now("m"))
    assert list(challenges.stale([TINY])) == []


def test_a_challenge_stays_with_what_is_found_later(own_library):
    challenge = challenges.challenge_of(instances.load(TINY), ["a"], 10.0)
    store_challenge(TINY, challenge)
    store_best(TINY, ring_design(2), Run.now("m"))
    assert instances.record(TINY).challenged == challenge
    store_bound(TINY, 11.5, Run.now("m"))
    settle(TINY)
    assert instances.record(TINY).challenged == challenge
    assert instances.record(TINY).found.objective == 11.5


def test_the_command_tells_what_is_stale(own_library, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["records", TINY, "--stale"])
    with pytest.raises(SystemExit) as ended:
        records.main()
    assert ended.value.code == 1
    assert (
        capsys.readouterr().out == f"{TINY}: never challenged\n1 of 1 records were not challenged by the present code\n"
    )
    store_challenge(TINY, challenges.challenge_of(instances.load(TINY), ["a"], 10.0))
    with pytest.raises(SystemExit) as ended:
        records.main()
    assert ended.value.code == 0
