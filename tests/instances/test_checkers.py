"""Checkers that stand alone, one file a problem: they agree with ``evaluate`` on what good answers are changed to."""

import importlib.util
import json
import random
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
from mutated import mutants

from ddlopt import instances
from ddlopt.instances import library
from ddlopt.instances.index import read
from ddlopt.models.catalogue import family
from ddlopt.models.errors import DdloptError

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "instances" / "checkers"
FILES = sorted(file for file in FOLDER.glob("*.py") if file.stem != "__init__")
PROBLEMS = {file.stem.replace("_", "/", 1): file for file in FILES}
LARGEST_BYTES, TAKEN = 60_000, 6
NEAR = {"gossip/weights", "gossip/matchings", "gossip/circulant", "gossip/period"}
"""Objectives with eigenvalues, which are no rational numbers."""
FEW, MANY = 30, 10_000
UNREADABLE = (AttributeError, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError)
"""What a checker's ``main`` takes for no answer at all."""


def loaded(file):
    spec = importlib.util.spec_from_file_location(f"checker_{file.stem}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answers(path):
    """Small bundled instances of a problem, as different as can be, and their best known solutions, as data."""
    found = {}
    for name, listed in read().instances.items():
        solution = instances.best(name) if listed.problem == path else None
        file = library.instance_file(name)
        if solution is not None and file.stat().st_size + len(solution.to_json()) < LARGEST_BYTES:
            instance = instances.load(name)
            if any(getattr(job, "delivery", None) for job in getattr(instance, "jobs", ())):
                continue  # the checker of slots says that it does not cover these
            kind = tuple(str(getattr(instance, field, "")) for field in ("goal", "objective", "collective", "mode"))
            found.setdefault(kind, []).append((instance, json.loads(file.read_text()), json.loads(solution.to_json())))
    ranked = sorted((place, number, each) for number, own in enumerate(found.values()) for place, each in _spread(own))
    return [each for *_, each in ranked][:TAKEN]


def _spread(own):
    """Each with a place: the smallest first, then one of every size."""
    step = max(1, len(own) // TAKEN)
    return enumerate(sorted(own, key=lambda each: len(json.dumps(each[1:])))[::step])


def verdicts(checker, instance, data, changed):
    """What both say of an answer: the objective and the kinds of rules that are broken; None where it is none."""
    try:
        solution = family(instance.family).solution.from_data(changed)
        ours = family(instance.family).evaluate(instance, solution, exact=True)
        expected = ours.objective, {violation.kind for violation in ours.violations}
    except DdloptError:
        expected = None
    try:
        objective, broken = checker.check(data, changed)
        found = objective, {rule for rule, _ in broken}
    except UNREADABLE:
        found = None
    return expected, found


def agree(path, expected, found):
    if expected is None or found is None:  # what cannot be read is nowhere feasible
        other = found if expected is None else expected
        return other is None or other[0] is None or bool(other[1])
    if expected[1] != found[1] or (expected[0] is None) != (found[0] is None):
        return False
    if expected[0] is None or path not in NEAR:
        return expected[0] == found[0]
    return abs(float(expected[0]) - float(found[0])) <= 1e-8 * max(abs(float(expected[0])), 1e-3)


def compare(path, count, seed=0):
    """Good answers and so many that are changed; the number of each verdict."""
    checker, source, told = loaded(PROBLEMS[path]), random.Random(seed), {"feasible": 0, "broken": 0, "unreadable": 0}
    cases = answers(path)
    assert cases
    for instance, data, good in cases:
        expected, found = verdicts(checker, instance, data, good)
        assert not expected[1]
        assert agree(path, expected, found), (instance.name, expected, found)
        for changed in islice(mutants(good, source), -(-count // len(cases))):
            expected, found = verdicts(checker, instance, data, changed)
            assert agree(path, expected, found), (instance.name, expected, found, json.dumps(changed))
            told["unreadable" if expected is None else "broken" if expected[1] else "feasible"] += 1
    return told


@pytest.mark.parametrize("path", PROBLEMS)
def test_a_checker_agrees_on_some_changed_answers(path):
    told = compare(path, FEW)
    assert told["broken"] + told["unreadable"] > FEW // 20


@pytest.mark.slow
@pytest.mark.parametrize("path", PROBLEMS)
def test_a_checker_agrees_on_ten_thousand_changed_answers(path):
    compare(path, MANY, seed=1)


def test_they_stand_alone():
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        imported = {line.split()[1] for line in text.splitlines() if line.startswith(("import ", "from "))}
        assert imported <= set(sys.stdlib_module_names), file.name
        assert text.split("\ndef main():")[1] == FILES[0].read_text(encoding="utf-8").split("\ndef main():")[1]


def test_what_two_share_is_the_same():
    """A plan of co-design holds a topology design."""
    topology, codesign = (PROBLEMS[path].read_text(encoding="utf-8") for path in ("topology", "codesign"))
    shared = topology[topology.index("\ndef need(") : topology.index("\ndef check(")]
    assert "def iteration_s(" in shared
    assert shared in codesign


def test_the_command_prints_objective_and_broken_rules(tmp_path):
    def run(*words):
        done = subprocess.run([sys.executable, "-I", *map(str, words)], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout

    checker, name = FOLDER / "topology.py", "topology/tiny-n4-d2"
    instance, best = library.instance_file(name), library.best_file(name)
    code, out = run(checker, instance, best)
    assert (code, out.splitlines()[-1]) == (0, "feasible")
    assert out.startswith("objective: ")
    data = json.loads(best.read_text())
    (tmp_path / "s.json").write_text(json.dumps(data | {"links": []}))
    code, out = run(checker, instance, tmp_path / "s.json")
    assert code == 1
    assert out.startswith("objective: none\nbroken: path_follows_links: ")
    (tmp_path / "s.json").write_text(json.dumps({"format": "ddlopt submission", "solution": data}))
    assert run(checker, instance, tmp_path / "s.json")[0] == 0
    (tmp_path / "s.json").write_text("{}")
    code, out = run(checker, instance, tmp_path / "s.json")
    assert (code, out) == (2, "this is no answer to the problem: KeyError: 'links'\n")
