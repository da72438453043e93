"""Which of the proofs that are found is handed on, in either sense, and what time each of them has."""

import json
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace

import pytest

from ddlopt.certificates.own import OwnCertificate
from ddlopt.models.errors import NotApplicableError, RefutedError, SolutionError, SolverError
from ddlopt.solvers import proofs
from ddlopt.solvers.proofs import CombinatorialCertificate, check, prove

DIGEST = "0" * 64


@dataclass(frozen=True)
class Own(OwnCertificate):
    format = "ddlopt own"
    kind = "own"
    says = "of anything"

    def check(self, instance, expired):
        return 7


@dataclass(frozen=True)
class Witness(Own):
    witness = True


def instance(sense="minimize", digest=DIGEST):
    return SimpleNamespace(name="one", digest=digest, sense=sense, family="f", kind="thing")


@pytest.fixture
def found(monkeypatch):
    """A function that says what each kind of proof comes to, and proves what is worth 10; a claim of None fails."""

    def asked(sense="minimize", combinatorial=None, own=None, trees=(), kind=Own, gap=0.1, objective=10, **options):
        sign = 1 if sense == "minimize" else -1
        told = SimpleNamespace(targets=[], limits=[], parts=[], asked=[])
        problem = SimpleNamespace(path="f", evaluate=lambda *_, **__: SimpleNamespace(objective=objective))
        named = {f"tree {k}": claim for k, claim in enumerate(trees)}

        def exact_bound(_):
            if combinatorial is None:
                raise NotApplicableError("no such bound")
            return Fraction(combinatorial)

        def own_prove(_instance, _solution, target, expired):
            told.targets.append(target)
            return None if own is None else kind("one", DIGEST, Fraction(own))

        def search(model, claim, time_limit):
            told.limits.append(time_limit)
            told.asked.append(model.name)
            if named[model.name] == "refuses":
                raise NotApplicableError("too large")
            worth = None if named[model.name] is None else Fraction(named[model.name])
            return SimpleNamespace(claim=worth, nodes=[], cuts=[], complete=worth is not None and
                                   sign * worth >= sign * claim)  # fmt: skip

        monkeypatch.setattr(proofs, "problem_of", lambda _: problem)
        monkeypatch.setattr(proofs, "path_of", lambda _: "f")
        monkeypatch.setattr(proofs, "exact_bound_of", lambda _: exact_bound)
        monkeypatch.setattr(proofs, "own_certificate", lambda _: kind)
        monkeypatch.setattr(proofs, "prover", lambda _: own_prove)
        monkeypatch.setattr(proofs, "tree_prover", lambda: search)
        monkeypatch.setattr(proofs, "formulations", lambda _: iter(named))
        monkeypatch.setattr(proofs, "formulation_by", lambda _, name: name)
        model = {"digest": DIGEST, "maximised": False}
        monkeypatch.setattr(proofs, "_model", lambda _, name: SimpleNamespace(name=name, **model))
        monkeypatch.setattr(proofs, "_snapped", lambda model, instance, form, worth, target: target)
        monkeypatch.setattr(proofs, "bound_of", lambda form, instance, maximised, claim: claim)
        real = proofs._expired
        monkeypatch.setattr(proofs, "_expired", lambda part: told.parts.append(part) or real(part))
        limit = options.pop("time_limit", None)
        certificate, closed = prove(instance(sense), "solution", gap, limit, **options)
        told.proof = None if certificate is None else (type(certificate).__name__, certificate.claim)
        told.method, told.closed = getattr(certificate, "method", None), closed
        return told

    return asked


@pytest.mark.parametrize(("sense", "at"), [("minimize", lambda x: x), ("maximize", lambda x: 20 - x)])
def test_the_tightest_proof_is_handed_on_and_what_closes_the_gap_ends_the_search(found, sense, at):
    """A gap of a tenth of 10; of proofs that are as tight the one that is found first."""
    tree, named = "LinearCertificate", "CombinatorialCertificate"
    for combinatorial, own, trees, proof, closed, asked in (
        (9.5, 9.9, (9.9,), (named, 9.5), True, 0),
        (9, 9.9, (9.9,), ("Own", 9.9), True, 0),  # 9 is a last digit short of it
        (8, 9.5, (9.9,), ("Own", 9.5), True, 0),
        (8, 7, (9.5, 9.9), (tree, 9.5), True, 1),
        (8, 7, (7.5, 9.9), (tree, 9.9), True, 2),
        (8, 7, (7.5, 7.9), (named, 8), False, 2),
        (8, 8, (8,), (named, 8), False, 1),
        (7, 8, (8, 7.5), ("Own", 8), False, 2),
        (7, 8, (None, "refuses", 8.5), (tree, 8.5), False, 3),
        (None, None, (None,), None, False, 1),
        (None, None, (), None, False, 0),
    ):
        told = found(sense, combinatorial and at(combinatorial), own and at(own),
                     [at(each) if isinstance(each, int | float) else each for each in trees])  # fmt: skip
        expected = proof and (proof[0], Fraction(at(proof[1])))
        assert (told.proof, told.closed, len(told.asked)) == (expected, closed, asked)
    assert all(0 < abs(target - at(9)) < 2e-6 and (target > at(9)) == (at(9) < 10) for target in told.targets)


def test_a_witness_stands_in_place_of_the_name_of_the_bound(found):
    for claim, proof in ((9.5, ("Witness", Fraction(19, 2))), (9, ("CombinatorialCertificate", Fraction(19, 2)))):
        told = found(combinatorial=9.5, own=claim, kind=Witness)
        assert (told.proof, told.closed) == (proof, True)
    assert found(combinatorial=9.5, own=9.5).proof == ("CombinatorialCertificate", Fraction(19, 2))


def test_what_is_asked_for_alone(found):
    told = found(combinatorial=8, own=9.9, trees=(8.5, 9.9), method="tree 0")
    assert (told.proof, told.closed, told.asked) == (("LinearCertificate", Fraction(17, 2)), False, ["tree 0"])
    told = found(combinatorial=8, own=9.9, trees=(9.9,), method="combinatorial")
    assert (told.proof, told.closed, told.asked) == (("CombinatorialCertificate", 8), False, [])
    with pytest.raises(NotApplicableError, match="too large"):
        found(trees=("refuses",), method="tree 0")
    with pytest.raises(NotApplicableError, match="no such bound"):
        found(method="combinatorial")
    with pytest.raises(SolverError, match="fails the check"):
        found(objective=None)


def test_the_time_is_shared_by_what_is_left_to_be_tried(found, monkeypatch):
    monkeypatch.setattr(proofs, "time", SimpleNamespace(monotonic=lambda: 0.0))
    told = found(own=7, trees=(None, None, None), time_limit=60.0)
    assert (told.parts, told.limits) == ([30.0], [20.0, 30.0, 60.0])
    assert found(own=7, time_limit=60.0).parts == [60.0]
    assert found(own=7, trees=(None,)).limits == [None]
    now = iter([0.0, 59.0, 60.0])
    monkeypatch.setattr(proofs, "time", SimpleNamespace(monotonic=lambda: next(now)))
    told = found(trees=(None, None, None), time_limit=60.0, method=None, own=None, kind=None)
    assert told.limits == [pytest.approx(1 / 3)]


def certificate(claim, digest=DIGEST):
    return CombinatorialCertificate("one", digest, Fraction(claim))


@pytest.mark.parametrize(("sense", "true", "false"), [("minimize", (4, 5), 5.1), ("maximize", (6, 5), 4.9)])
def test_the_name_of_a_bound_proves_what_the_bound_is(monkeypatch, sense, true, false):
    monkeypatch.setattr(proofs, "path_of", lambda _: "f")
    monkeypatch.setattr(proofs, "exact_bound_of", lambda _: lambda _: Fraction(5))
    for claim in true:
        assert check(instance(sense), certificate(claim)).bound == claim
    with pytest.raises(RefutedError, match="is 5, not"):
        check(instance(sense), certificate(false))
    with pytest.raises(SolutionError, match="the certificate is of 'one'"):
        check(instance(sense), certificate(4, "1" * 64))
    monkeypatch.setattr(proofs, "exact_bound_of", lambda _: None)
    with pytest.raises(NotApplicableError, match="not recomputed in rational numbers"):
        check(instance(sense), certificate(4))


def test_a_proof_of_another_kind_and_one_that_was_not_looked_at_to_its_end_prove_nothing(monkeypatch):
    monkeypatch.setattr(proofs, "path_of", lambda _: "f")
    monkeypatch.setattr(proofs, "own_certificate", lambda _: Own)
    proof = Own("one", DIGEST, Fraction(5))
    found = check(instance(), proof, time_limit=1e9)
    assert (found.bound, found.kind, found.nodes) == (5, "own", 7)
    with pytest.raises(SolutionError, match="a own certificate says nothing of a thing"):
        check(instance(), Witness("one", DIGEST, Fraction(5)))
    now = iter([0.0, 10.0, 0.0, 10.1])
    monkeypatch.setattr(proofs, "time", SimpleNamespace(monotonic=lambda: next(now)))
    assert check(instance(), proof, time_limit=10.0).bound == 5
    with pytest.raises(SolverError, match="was given up after 10 s; nothing is refuted"):
        check(instance(), proof, time_limit=10.0)


@pytest.mark.parametrize(
    ("sense", "offset", "step", "target", "worth", "claim"),
    [
        ("minimize", 0, 1, Fraction(9, 2), 5, 5),  # what is more than 4 is 5
        ("minimize", 0, 1, Fraction(4), 5, 4),
        ("minimize", Fraction(1, 4), 1, Fraction(9, 2), 6, Fraction(21, 4)),
        ("minimize", 0, 2, Fraction(9, 2), 6, 6),
        ("minimize", 0, 2, Fraction(9, 2), 5, Fraction(9, 2)),  # more than the objective has would be false
        ("minimize", 0, None, Fraction(9, 2), 5, Fraction(9, 2)),
        ("maximize", 0, 1, Fraction(11, 2), 5, 5),
        ("maximize", 0, 2, Fraction(11, 2), 5, Fraction(11, 2)),
    ],
)
def test_where_objectives_are_on_a_grid_a_claim_is_the_next_point(
    monkeypatch, sense, offset, step, target, worth, claim
):
    sign = 1 if sense == "minimize" else -1  # a model of a maximum is minimised, with its sign changed
    monkeypatch.setattr(proofs, "claim_for", lambda form, instance, maximised, target: sign * target)
    monkeypatch.setattr(proofs, "bound_of", lambda form, instance, maximised, claim: sign * claim)
    monkeypatch.setattr(proofs, "step_of", lambda _: step)
    model = SimpleNamespace(offset=Fraction(offset), maximised=sign < 0)
    assert sign * proofs._snapped(model, instance(sense), None, Fraction(worth), target) == claim


class Form:
    """A formulation of what it was made to be of."""

    def __init__(self, refusal=None, scope=None):
        self.refuses, self.scope = (lambda _: refusal), (lambda _: scope)


@pytest.fixture
def known(monkeypatch):
    """Methods and relaxations by name, with their formulations."""
    forms = {"whole": Form(), "part": Form(scope="pairs"), "small": Form("too many"), "again": Form(), "none": None}
    forms["again"] = forms["whole"]
    kinds = dict.fromkeys(forms, "exact") | {"greedy": "heuristic"}
    loose, tight = Form(), Form("too few")
    entries = [SimpleNamespace(name=name, kind=kind) for name, kind in kinds.items()]
    methods = {name: SimpleNamespace(refuses=lambda _: None, formulation_for=lambda _, form=form: form)
               for name, form in forms.items()}  # fmt: skip
    methods["wide"] = SimpleNamespace(refuses=lambda _: "too wide", formulation_for=None)
    entries.append(SimpleNamespace(name="wide", kind="exact"))
    made = SimpleNamespace(own_entries=lambda _: entries, method=lambda name, _: methods[name])
    monkeypatch.setattr(proofs, "catalogue", made)
    problem = SimpleNamespace(relaxations={"loose": lambda: loose, "tight": lambda: tight})
    monkeypatch.setattr(proofs, "problem_of", lambda _: problem)
    return forms | {"loose": loose}


def test_formulations_of_all_solutions_are_proven_each_once(known):
    assert list(proofs.formulations(instance())) == ["whole", "loose"]
    for name in ("whole", "again", "loose"):
        assert proofs.formulation_by(instance(), name) is known[name]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("part", "part searches a smaller class of solutions: pairs"),
        ("small", "small has no formulation of 'one': too many"),
        ("tight", "tight has no formulation of 'one': too few"),
        ("wide", "wide has no formulation of 'one': too wide"),
        ("none", "none has no formulation of 'one'$"),
        ("greedy", "'greedy' is no exact method of f; there are: again, loose, none, part, small, tight, whole, wide"),
    ],
)
def test_what_says_nothing_of_all_solutions_is_no_proof(known, name, message):
    with pytest.raises(SolutionError, match=message):
        proofs.formulation_by(instance(), name)


@pytest.mark.parametrize(
    "changed",
    [{}, {"version": 2}, {"version": True}, {"more": 1}, {"instance": 1}, {"instance_digest": None}, {"claim": 3},
     {"claim": "3.0e"}, {"claim": None}],
)  # fmt: skip
def test_a_file_with_the_name_of_a_bound_is_read_back_or_refused(tmp_path, changed):
    path = tmp_path / "proof.json.gz"
    certificate("-3/4").save(path)
    assert proofs.read(path, instance()) == certificate("-3/4")
    data = json.loads(certificate("-3/4").text) | changed
    (tmp_path / "changed").write_text(json.dumps(data))
    if not changed:
        assert proofs.read(tmp_path / "changed", instance()) == certificate("-3/4")
        return
    with pytest.raises(SolutionError, match=r"is no certificate|claim is a fraction"):
        proofs.read(tmp_path / "changed", instance())
