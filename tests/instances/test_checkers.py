"""Checkers that stand alone, one file a problem: they agree with ``evaluate`` on what good answers are changed to."""

import importlib.util
import json
import math
import random
import re
import subprocess
import sys
from fractions import Fraction
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from drawn_plans import drawn_plan, drawn_step
from mutated import mutants

from ddlopt import instances
from ddlopt.instances import library
from ddlopt.instances.index import read
from ddlopt.models.catalogue import family, problem
from ddlopt.models.errors import DdloptError

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "instances" / "checkers"
FILES = sorted(file for file in FOLDER.glob("*.py") if file.stem != "__init__")
PROBLEMS = {file.stem.replace("_", "/", 1): file for file in FILES}
LARGEST_BYTES, TAKEN = 60_000, 6
TOLD_APART = ("goal", "objective", "collective", "mode", "stragglers")
"""Fields of instances whose checks differ."""
NEAR = dict.fromkeys(("gossip/weights", "gossip/matchings", "gossip/circulant", "gossip/period"), Fraction(1, 10**8))
NEAR |= {"aggregation/table": Fraction(1, 10**30)}
"""How far objectives may be apart that are no rational numbers: eigenvalues, and logarithms of 40 digits."""
DRAWN = {"deployment/step": drawn_step, "deployment/plan": drawn_plan}
"""Answers that are drawn, where good ones are much alike: few have pipelines, or operators that are duplicated."""
FEW, MANY = 20, 10_000
MENU = (
    *("cluster", "compressor", "device", "gpus_per_node", "inter_bandwidth_bytes_per_s", "intra"),
    *("intra_bandwidth_bytes_per_s", "latency_s", "levels", "nodes", "rank", "ratio", "scope"),
)
"""What a menu of options was made of; the times of its options are given."""
UNASKED = {
    "topology/collective": ("switches",),
    "scheduling": ("switches",),
    "compression/timeline": MENU,
    "compression/levels": ("compressor", "shape"),
    # Of its time line it takes one wire without fusion, and says so.
    "compression/forward": (
        *(*MENU, "busy_s", "fusion", "goal", "label", "lane", "lanes", "largest_bucket_bytes", "shape", "stages"),
        "time_budget_s",
    ),
    "codesign": ("remedies",),
    "deployment/step": ("slower_inside", "context_bytes", "tensor_bytes"),  # the last two by dimension
    "aggregation/hot": ("labels",),
    "aggregation/registers": ("held_out", "labels"),
    "aggregation/tree": ("names",),
    "aggregation/slots": ("chances", "delays_s", "loss", "timeout_s", "workers"),  # it says that it takes none
    "gossip/weights": ("names",),
    "gossip/matchings": ("names",),
    "gossip/period": ("names",),
    "gossip/exchange": ("blocks", "rates"),  # what the points were made of
    "cluster/placement": ("host_names",),
    "cluster/jobs": ("least_s",),
    "cluster/joint": ("arrival_s", "deadline_s", "weight"),  # of jobs, which it hands on
}  # fmt: skip
"""Fields of instances that no answer depends on, or that a checker reads without their name."""
UNREADABLE = (AttributeError, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError)
"""What a checker's ``main`` takes for no answer at all."""


def loaded(file):
    spec = importlib.util.spec_from_file_location(f"checker_{file.stem}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answers(path):
    """Small bundled instances of a problem, as different as can be, and their best known solutions, as data."""
    found, taken = {}, []
    for name, listed in read().instances.items():
        file = library.instance_file(name)
        if listed.problem == path and file.stat().st_size < LARGEST_BYTES:
            data = json.loads(file.read_text())
            if any(isinstance(job, dict) and job.get("delivery") for job in data.get("jobs", ())):
                continue  # the checker of slots says that it does not cover these
            found.setdefault(tuple(str(data.get(field, "")) for field in TOLD_APART), []).append((name, data))
    ranked = sorted((place, number, each) for number, own in enumerate(found.values()) for place, each in _spread(own))
    for *_, (name, data) in ranked:
        solution = instances.best(name)
        if solution is not None and len(json.dumps(data)) + len(solution.to_json()) < LARGEST_BYTES:
            taken.append((instances.load(name), data, json.loads(solution.to_json())))
        if len(taken) == TAKEN:
            break
    return taken


def _spread(own):
    """Each with a place: the smallest first, then one of every size."""
    step = max(1, len(own) // TAKEN)
    return enumerate(sorted(own, key=lambda each: len(json.dumps(each[1])))[::step])


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


def agree(path, expected, found, best=None):
    """Whether both say the same; times much longer than the ``best`` one are as inexact as they are long.

    A time to a target is one over what is left of it, and that is a difference: what is as near is its inverse.
    """
    if expected is None or found is None:  # what cannot be read is nowhere feasible
        other = found if expected is None else expected
        return other is None or other[0] is None or bool(other[1])
    if expected[1] != found[1] or (expected[0] is None) != (found[0] is None):
        return False
    if expected[0] is None or path not in NEAR:
        return expected[0] == found[0]
    exact, other = (Fraction(each[0]) for each in (expected, found))
    worse = 1 if path != "gossip/period" or best is None else max(1, exact / Fraction(best))
    return abs(exact - other) <= NEAR[path] * worse * max(abs(exact), Fraction(1, 1000))


def shares(cases, count):
    """How many of so many answers each instance gets: small ones more, so that all take about as long."""
    weights = [1 / len(json.dumps(each[1:])) for each in cases]
    return [math.ceil(count * weight / sum(weights)) for weight in weights]


def compare(path, count, seed=0):
    """Good answers and so many that are changed; the number of each verdict."""
    checker, source, told = loaded(PROBLEMS[path]), random.Random(seed), {"feasible": 0, "broken": 0, "unreadable": 0}
    cases = answers(path)
    assert cases
    for own, (instance, data, good) in zip(shares(cases, count), cases, strict=True):
        expected, found = verdicts(checker, instance, data, good)
        assert not expected[1]
        assert agree(path, expected, found), (instance.name, expected, found)
        best = expected[0]
        for changed in islice(mutants(good, source), own):
            expected, found = verdicts(checker, instance, data, changed)
            assert agree(path, expected, found, best), (instance.name, expected, found, json.dumps(changed))
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


def compare_drawn(path, count, seed=0):
    """Answers that are drawn; how many have an objective."""
    checker, source, told = loaded(PROBLEMS[path]), random.Random(seed), 0
    cases = answers(path)
    for own, (instance, data, _) in zip(shares(cases, count), cases, strict=True):
        for _ in range(own):
            drawn = DRAWN[path](instance, source)
            expected, found = verdicts(checker, instance, data, drawn)
            assert agree(path, expected, found), (instance.name, expected, found, json.dumps(drawn))
            told += expected is not None and expected[0] is not None
    return told


@pytest.mark.parametrize("path", DRAWN)
def test_a_checker_agrees_on_drawn_answers(path):
    assert compare_drawn(path, FEW) > FEW // 5


@pytest.mark.slow
@pytest.mark.parametrize("path", DRAWN)
def test_a_checker_agrees_on_a_thousand_drawn_answers(path):
    assert compare_drawn(path, MANY // 10, seed=1) > MANY // 50


def test_weights_may_be_a_matrix():
    checker, source = loaded(PROBLEMS["gossip/weights"]), random.Random(3)
    for instance, data, good in answers("gossip/weights"):
        if instance.goal in ("averaging", "chain"):
            rows = np.eye(instance.size)
            for (i, j), weight in zip(instance.network.edges, good["weights"], strict=True):
                rows[[i, j], [i, j]] -= weight
                rows[[i, j], [j, i]] += weight
            whole = good | {"weights": [], "matrix": rows.tolist()}
            for changed in [whole, *islice(mutants(whole, source), 20)]:
                expected, found = verdicts(checker, instance, data, changed)
                assert agree("gossip/weights", expected, found), (instance.name, expected, found)


def test_steps_of_a_collective_take_time():
    checker, source = loaded(PROBLEMS["topology/collective"]), random.Random(5)
    for instance, data, good in answers("topology/collective"):
        slow_steps, changed_data = instance.changed(step_s=0.5), data | {"step_s": 0.5}
        for changed in [
            good | {"instance_digest": None},
            *islice(mutants(good | {"instance_digest": None}, source), 5),
        ]:
            expected, found = verdicts(checker, slow_steps, changed_data, changed)
            assert agree("topology/collective", expected, found), (instance.name, expected, found)
        assert checker.check(changed_data, good)[0] > checker.check(data, good)[0]


@pytest.mark.parametrize("path", PROBLEMS)
def test_a_checker_reads_every_field(path):
    """One that it passes over says nothing about answers: an optional one is set in few instances."""
    text = PROBLEMS[path].read_text(encoding="utf-8")
    unread = {
        name for name in _fields(problem(path).instance.model_json_schema()) if not re.search(rf"\b{name}\b", text)
    }
    assert unread - {"family", "source"} == set(UNASKED.get(path, ()))


def _fields(schema):
    if isinstance(schema, dict):
        yield from schema.get("properties", ())
        schema = list(schema.values())
    for each in schema if isinstance(schema, list) else ():
        yield from _fields(each)


def test_every_problem_has_one():
    assert set(PROBLEMS) == {listed.problem for listed in read().instances.values()}


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


def test_eigenvalues_are_proven_in_the_same_lines():
    texts = [PROBLEMS[f"gossip/{name}"].read_text(encoding="utf-8") for name in ("weights", "matchings", "period")]
    shared = texts[0][texts[0].index("\ndef positive(") : texts[0].index("\ndef rows_of(")]
    assert all(shared in text for text in texts)


@pytest.mark.parametrize("matrix", [[[2, 0], [0, 2]], [[0, 0], [0, 0]], [[-1, 0], [0, -3]], [[1, 1e-9], [1e-9, 1]]])
def test_a_proven_eigenvalue_is_no_less_and_near(matrix):
    largest = loaded(PROBLEMS["gossip/weights"]).largest([[Fraction(value) for value in row] for row in matrix])
    (a, b), (_, c) = ([Fraction(value) for value in row] for row in matrix)
    # The roots of x^2 - (a + c) x + (ac - b^2): at the larger one and beyond it is at least 0.
    assert 2 * largest >= a + c
    assert (largest - a) * (largest - c) >= b * b
    near = largest - Fraction(1, 10**11) * (abs(a) + abs(b) + abs(c))
    assert 2 * near < a + c or (near - a) * (near - c) < b * b or largest == 0


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
