"""Which options are refused, which methods a name stands for, and which of them are guarded."""

from types import SimpleNamespace

import pytest

import ddlopt
from ddlopt.models.errors import NotApplicableError, OptionError, SolverMissingError
from ddlopt.solvers import choice
from ddlopt.solvers.choice import by_solver, opened_by, require_solver_use, require_use, within, written_out
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.wrappers.guarded import Guarded

TINY = ddlopt.load("topology/tiny-n4-d2")


def method(name, uses=None, refusal=None):
    return SimpleNamespace(name=name, family="topology", uses=uses, refuses=lambda _: refusal)


@pytest.mark.parametrize(("time_s", "memory", "can", "guarded"), [
    (None, None, True, False), (None, 10**9, True, True), (5.0, None, True, True), (5.0, None, False, False),
    (5.0, 10**9, False, True),
])  # fmt: skip
def test_what_has_a_limit_is_guarded(monkeypatch, time_s, memory, can, guarded):
    monkeypatch.setattr(choice, "can_guard", lambda: can)
    asked = method("m")
    found = within(asked, Limits(time_s), memory)
    assert (found is asked) == (not guarded)
    if guarded:
        assert (found.asked, found.memory_bytes) == (asked, memory)
        assert isinstance(found, Guarded)


def test_an_option_that_none_of_the_methods_uses_is_refused(monkeypatch):
    entries = [SimpleNamespace(name=f"e{k}", make=lambda _, k=k: method(f"e{k}", {"seed"} if k else None))
               for k in range(6)]  # fmt: skip
    monkeypatch.setattr(choice.catalogue, "entries", lambda _: entries)
    threads, nothing, silent = method("t", {"threads"}), method("n", frozenset()), method("s")
    for methods in ((silent,), (nothing, silent), (threads, nothing), ()):
        require_use([(TINY, each) for each in methods], ["threads"])
    require_use([(TINY, nothing)], [])
    with pytest.raises(OptionError, match=r"^n on 'tiny-n4-d2' has no use for a seed; leave seed out, or take a method "
                       r"that has: e1, e2, e3, e4, …$"):  # fmt: skip
        require_use([(TINY, nothing)], ["seed"])
    with pytest.raises(OptionError, match=r"^n, t on 'tiny-n4-d2' have no use for a start; leave start out$"):
        require_use([(TINY, nothing), (TINY, threads), (TINY, threads)], ["threads", "start"])
    del entries[5]
    with pytest.raises(OptionError, match=r"that has: e1, e2, e3, e4$"):
        require_use([(TINY, nothing)], ["seed"])


def test_names_for_several_leave_out_what_is_asked_for_besides_and_what_refuses(monkeypatch):
    kinds = {"a": "heuristic", "b": "heuristic", "c": "heuristic", "d": "exact"}
    made = SimpleNamespace(
        entries=lambda _: [SimpleNamespace(name=name, kind=kind) for name, kind in kinds.items()],
        default_method=lambda _: "c", method=lambda name, *_: method(name, refusal="no" if name == "b" else None),
    )  # fmt: skip
    monkeypatch.setattr(choice, "catalogue", made)
    mine = method("mine")
    assert written_out(["all-heuristics", mine], TINY) == ["a", "c", mine]
    assert written_out(["a", "all-heuristics", "auto"], TINY) == ["a", "auto"]
    assert written_out(["all-exact"], TINY) == ["d"]


def test_a_solver_that_nothing_uses_is_refused(monkeypatch):
    monkeypatch.setattr(choice.catalogue, "uses_solver", lambda made, _: made.name == "exact")
    exact, quick = ("exact", method("exact")), ("quick", method("quick"))
    for chosen in ([exact], [quick, exact], [(None, method("quick"))], [("auto", method("quick"))]):
        require_solver_use(TINY, "cbc", chosen)
    for chosen in ([quick], [quick, (method("mine"), method("exact"))]):
        with pytest.raises(OptionError, match="uses no solver that could be chosen; leave 'cbc' out"):
            require_solver_use(TINY, "cbc", chosen)


def test_a_method_is_asked_once_for_each_solver_that_it_uses(monkeypatch):
    def made(asked, instance, solver):
        if solver == "none":
            raise SolverMissingError("install it")
        return method(f"{asked} by {solver}")

    monkeypatch.setattr(choice, "method_for", made)
    monkeypatch.setattr(choice.catalogue, "uses_solver", lambda made, _: made.name.startswith("exact"))
    for asked, names in (("exact", ["exact by a", "exact", "exact by b"]), ("quick", ["quick by a"])):
        found = by_solver(asked, TINY, ["a", "none", "b"])
        assert [each.name for each in found] == names
    assert [each.name for each in by_solver("auto", TINY, ["a", "b"])] == ["auto by a", "auto by b"]
    assert [each.name for each in by_solver("quick", TINY, ["a"])] == ["quick by a"]
    missing = by_solver("exact", TINY, ["a", "none"])[1]
    assert (missing.refuses(TINY), missing.solver_for(TINY)) == (None, "none")
    with pytest.raises(SolverMissingError, match="install it"):
        missing.solve(TINY, Limits())


def test_an_opening_has_to_cover_the_instance_as_the_method_has():
    good, bad = method("good"), method("bad", refusal="too dense")
    both = opened_by(good, method("slow"), TINY)
    assert (both.name, both.opening, both.model(TINY).name) == ("slow", good, "slow")
    for pair in ((good, bad), (bad, good)):
        with pytest.raises(NotApplicableError, match="bad does not cover 'tiny-n4-d2': too dense"):
            opened_by(*pair, TINY)
