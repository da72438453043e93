"""``ddlopt submit``: the file that it makes, what of it is kept, and what is refused; and the records of ``show``."""

import base64
import hashlib
import json
import os
from fractions import Fraction

import pytest
from library_cases import TINY, library_of_one, ring_design
from report_cases import instance_row, run_row

import ddlopt
from ddlopt import instances
from ddlopt.analysis.bench import Store
from ddlopt.instances.library import certificates
from ddlopt.instances.library.records import Run
from ddlopt.instances.library.store_best import store_bound
from ddlopt.solvers.proofs import CombinatorialCertificate


@pytest.fixture
def own_library(tmp_path, monkeypatch):
    """The folder of a library of one instance without a solution."""
    return library_of_one(tmp_path, monkeypatch).parent


WHO = ("--method", "a ring", "--author", "Ada", "--licence", "CC0-1.0")


@pytest.fixture
def submit(call, tmp_path):
    """Make a file of the ring design of so many links a hop and take it: exit code, output, errors."""

    def submitted(count, method="a ring", name="tiny-n4-d2"):
        made = handed_in(call, tmp_path, count, "--method", method, name=name)
        return made if made[0] else call("submit", "--take", tmp_path / "s.json")

    return submitted


def handed_in(call, folder, count, *more, name="tiny-n4-d2"):
    """Make ``s.json`` of the ring design of so many links a hop."""
    (folder / "design.json").write_text(ring_design(count).to_json())
    return call("submit", name, folder / "design.json", *WHO, *more, "--out", folder / "s.json")


def test_one_file_is_made_that_check_accepts(own_library, call, tmp_path):
    code, out, err = handed_in(call, tmp_path, 2)
    assert (code, err) == (0, "")
    assert out == f"{TINY}: objective 11.5 s; none was known\nwritten: {tmp_path / 's.json'}\n"
    assert instances.record(TINY) is None
    for words in ([tmp_path / "s.json"], [TINY, tmp_path / "s.json"]):
        code, out, err = call("check", *words)
        assert (code, err) == (0, "")
        first, by, objective = out.splitlines()
        assert first == f"{TINY}: the submission holds, in exact arithmetic"
        assert by.startswith("by: a ring, Ada, 20")
        assert by.endswith(", CC0-1.0")
        assert "11.5 s" in objective
    data = json.loads(call("check", tmp_path / "s.json", "--json")[1])
    assert data["holds"]
    assert data["author"] == "Ada"


def test_a_better_solution_is_kept_recorded_and_listed(own_library, submit):
    assert submit(1) == (
        0,
        f"{TINY}: 23 s by a ring (Ada) is the best known now\n{TINY}: bound 11.5 s by combinatorial, gap 50.00 %\n",
        "",
    )
    code, out, err = submit(2, "a ring of pairs", name=TINY)
    expected = f"{TINY}: 11.5 s by a ring of pairs (Ada) is the best known now, before 23 s\n"
    assert (code, out, err) == (0, expected, "")
    assert instances.best(TINY).links == ring_design(2).links
    found = instances.record(TINY).found
    assert (found.method, found.author, found.licence) == ("a ring of pairs", "Ada", "CC0-1.0")
    assert "| 11.5 s | 11.5 s | 0 % | a ring of pairs (Ada) |" in (own_library / "INDEX.md").read_text()


def test_what_is_not_better_is_not_taken(own_library, submit):
    submit(2, "first")
    before = (own_library / "INDEX.md").read_text()
    for count in (1, 2):
        told = "nothing in it is better than what the library has, in exact arithmetic\n"
        assert submit(count, "second") == (0, told, "")
    assert (own_library / "INDEX.md").read_text() == before


def test_after_a_crash_before_the_index_it_is_written_by_the_next_call(own_library, submit):
    submit(2)
    (own_library / "INDEX.md").unlink()
    assert submit(2)[0] == 0
    assert (own_library / "INDEX.md").exists()


def test_a_bound_is_handed_in_with_its_proof(own_library, call, tmp_path, monkeypatch):
    monkeypatch.setattr(certificates, "FOLDER", tmp_path)
    monkeypatch.setattr(certificates, "INDEX", tmp_path / "certificates.json")
    certificates.entries.cache_clear()
    instance, proof = instances.load(TINY), tmp_path / "proof.json"
    CombinatorialCertificate(TINY, instance.digest, Fraction(23, 2)).save(proof)
    made = call("submit", TINY, *WHO, "--certificate", proof, "--out", tmp_path / "b.json")
    told = f"{TINY}: bound 11.5 s, proven by the certificate"
    assert made == (0, f"{told}; none was known\nwritten: {tmp_path / 'b.json'}\n", "")
    assert call("check", tmp_path / "b.json")[0] == 0
    handed_in(call, tmp_path, 2)
    code, out, err = call("submit", "--take", tmp_path / "s.json", "--take", tmp_path / "b.json")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == f"{TINY}: the certificate is kept"
    assert f"{told}, not better than the best known 11.5 s" in call("check", tmp_path / "b.json")[1]
    record = instances.record(TINY)
    weaker = record.model_copy(update={"bound": record.bound.model_copy(update={"value": 11.0})})
    monkeypatch.setattr(instances, "record", lambda name: weaker)
    assert f"{told}, better than the best known 11 s" in call("check", tmp_path / "b.json")[1]
    entry = certificates.entries()[TINY]
    assert (entry["evidence"], entry["method"], entry["gap"]) == ("combinatorial", "a ring", 0.0)
    kept = certificates.file_of(TINY)
    assert entry["sha256"] == hashlib.sha256(kept.read_bytes()).hexdigest()
    assert ddlopt.check_certificate(instance, kept).bound == Fraction(23, 2)
    certificates.entries.cache_clear()


def claim_of_12(instance):
    """A certificate that says more than the bound proves, in base 64."""
    return base64.b64encode(CombinatorialCertificate(TINY, instance.digest, Fraction(12)).text.encode()).decode()


FORGED = [
    ({"objective": "11"}, "the objective is 23/2, not 11"),
    ({"bound": "12"}, "the certificate proves 23/2, not 12"),
    ({"certificate": claim_of_12}, "the certificate does not hold: "),
]


@pytest.mark.parametrize(("change", "fault"), FORGED, ids=["objective", "bound", "proof"])
def test_what_does_not_hold_is_neither_accepted_nor_taken(own_library, call, tmp_path, change, fault):
    instance, proof = instances.load(TINY), tmp_path / "proof.json"
    CombinatorialCertificate(TINY, instance.digest, Fraction(23, 2)).save(proof)
    assert handed_in(call, tmp_path, 2, "--certificate", proof)[0] == 0
    data = json.loads((tmp_path / "s.json").read_text())
    if callable(change.get("certificate")):
        change = {"certificate": change["certificate"](instance)}
    (tmp_path / "s.json").write_text(json.dumps(data | change))
    code, out, err = call("check", tmp_path / "s.json")
    assert (code, err) == (1, "")
    assert out.startswith(f"{TINY}: {fault}")
    code, out, err = call("submit", "--take", tmp_path / "s.json")
    assert (code, out) == (2, "")
    assert fault in err
    assert instances.record(TINY) is None
    assert json.loads(call("check", tmp_path / "s.json", "--json")[1])["holds"] is False


DAMAGED = [
    ({"instance_digest": "0" * 64}, "the submission is for 'topology/tiny-n4-d2' (digest 000000000000…), not for"),
    ({"licence": "secret"}, "licence: use one of: Apache-2.0, CC0-1.0, "),
    ({"author": " "}, "author: expected a line of text"),
    ({"method": "a\nb"}, "method: expected a line of text"),
    ({"method": ""}, "method: String should have at least 1 character"),
    ({"objective": "0.5"}, "objective: expected a fraction like 17/3"),
    ({"objective": None}, "solution and objective: give both or neither"),
    ({"bound": "1"}, "bound and certificate: give both or neither"),
    ({"certificate": "%", "bound": "1"}, "certificate: is not in base 64"),
    ({"solution": None, "objective": None}, "there is neither a solution nor a certificate"),
    ({"version": 2}, "version: Input should be 1"),
    ({"colour": 1}, "colour: there is no such field"),
    ({"instance": "topology/none"}, "there is no instance or file 'topology/none'"),
    ({"solution": {}}, "is missing"),
    ({"solution": {"family": "gossip"}}, "family"),
]


@pytest.mark.parametrize(("change", "message"), DAMAGED)
def test_a_damaged_file_is_one_line(own_library, call, refused, tmp_path, change, message):
    handed_in(call, tmp_path, 2)
    data = json.loads((tmp_path / "s.json").read_text())
    (tmp_path / "s.json").write_text(json.dumps(data | change))
    assert message in refused("check", tmp_path / "s.json")
    assert message in refused("submit", "--take", tmp_path / "s.json")


def test_bad_solutions_are_one_line(own_library, call, submit, refused, tmp_path):
    code, out, err = submit(3)
    assert (code, out) == (2, "")
    assert err.startswith(f"ddlopt: '{TINY}': the solution is not feasible: out_degree at ")
    assert err.count("\n") == 1
    assert instances.store_best(TINY, ring_design(1))
    store_bound(TINY, 23.0, Run(method="wrong"))
    code, out, err = submit(2)
    assert (code, out) == (1, "")
    assert "a solution of 11.5 (a ring, " in err
    assert ") is better than the bound 23 (wrong); one of the two is wrong" in err
    (tmp_path / "odd.json").write_text("{}")
    assert "is missing" in refused("submit", TINY, tmp_path / "odd.json", *WHO)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give NAME and SOLUTION or --certificate FILE; or --take FILE, or --store FILE, alone"),
        (["tiny-n4-d2", *WHO], "give NAME and SOLUTION or --certificate FILE"),
        (["tiny-n4-d2", "x.json"], "--method, --author, --licence are needed: the table says how it was found"),
        (["tiny-n4-d2", "x.json", "--method", "m", "--author", "a"], "--licence is needed"),
        (["tiny-n4-d2", "x.json", "--store", "r.sqlite"], "--take FILE and --store FILE take nothing else"),
        (["--method", "m", "--store", "r.sqlite"], "--take FILE and --store FILE take nothing else"),
        (["--take", "s.json", "--store", "r.sqlite"], "--take FILE and --store FILE take nothing else"),
        (["--take", "none.json"], "none.json: cannot be read: No such file"),
        (["tiny-n4", "x.json", *WHO], "there is no instance or file 'tiny-n4'; do you mean topology/tiny-n4-d2"),
        (["tiny-n4-d2", "x.json", *WHO], "x.json: cannot be read: No such file"),
        (["tiny-n4-d2", *WHO, "--certificate", "x.json"], "x.json"),
        (["tiny-n4-d2", "x.json", *WHO, "--out", "none/s.json"], "none/s.json cannot be written"),
        (["--store", "none.sqlite"], "none.sqlite: there is no such store"),
    ],
)
def test_mistakes_are_one_line(own_library, refused, words, message):
    err = refused("submit", *words)
    assert message in err


def test_a_library_that_cannot_be_written_to_is_one_line(own_library, call, tmp_path, monkeypatch):
    handed_in(call, tmp_path, 2)
    monkeypatch.setattr("os.access", lambda path, mode, **_: mode != os.W_OK)
    code, out, err = call("submit", "--take", tmp_path / "s.json")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "is read-only" in err


def test_a_store_is_taken_over_in_one_go(own_library, call, tmp_path):
    path = tmp_path / "r.sqlite"
    instance = instances.load(TINY)
    row = instance_row(instance.digest, instance.name)
    with Store(path) as opened:
        for count, objective, bound in ((1, 23.0, 11.5), (2, 11.5, None)):
            solution = json.loads(ring_design(count).to_json())
            opened.add(run_row(row, f"m{count}", 0, "feasible", objective, bound, solution=solution), row)
    code, out, err = call("submit", "--store", path)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"{TINY}: 11.5 s by m2 is the best known now",
        f"{TINY}: bound 11.5 s by combinatorial, gap 0 %",
    ]
    assert "| m2 |" in (own_library / "INDEX.md").read_text()
    assert call("submit", "--store", path) == (0, f"nothing in {path} is better than what the library has\n", "")
    store_bound(TINY, 11.5, Run())
    with Store(path) as opened:
        opened.add(run_row(row, "mad", 0, "feasible", 9.0, 9.0, solution=solution | {"links": []}), row)
    code, out, err = call("submit", "--store", path)
    assert (code, out) == (1, "")
    assert err.startswith(f"'{TINY}': the solution is not feasible: ")


def test_show_tells_what_is_recorded(call):
    code, out, _ = call("show", "topology/tiny-n4-d2")
    assert code == 0
    lines = {line[:27].strip(): line[27:].strip() for line in out.splitlines()}
    known = instances.record("topology/tiny-n4-d2")
    assert lines["best known"].startswith("11.5 s by ")
    assert known.found.method in lines["best known"]
    assert known.found.version in lines["best known"]
    assert lines["bound"].startswith(f"11.5 s by {known.bound.method}")
    assert lines["gap"] == "0 %"
