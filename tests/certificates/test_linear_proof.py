"""The checker of trees over linear programs: what it accepts, what it refuses, and that it never says too much."""

import ast
import dataclasses
import itertools
import json
import math
import random
from fractions import Fraction
from pathlib import Path

import pyomo.environ as pyo
import pytest
from exact_program import loosened
from linear_programs import GOOD, knapsack, open_model, random_model
from volume import slow

import ddlopt
from ddlopt.analysis.certify import best_known
from ddlopt.certificates.linear import (
    ExactModel,
    LinearCertificate,
    check,
    check_tree,
    cuts,
    exact_model,
    program,
    program_of,
)
from ddlopt.certificates.linear.cuts import with_cuts
from ddlopt.certificates.linear.objective import _Rational, bound_of, claim_for
from ddlopt.certificates.linear.plain import plain_tree
from ddlopt.frontier.linear_proof import tree as tree_search
from ddlopt.frontier.linear_proof.tree import prove
from ddlopt.models.errors import NotApplicableError, RefutedError, SolutionError
from ddlopt.solvers import proofs


def proves(model, claim, nodes, cuts=(), cutoff=None):
    program = program_of(model, Fraction(claim), fine=bool(cuts), cutoff=cutoff if cuts else None)
    for _ in check_tree(with_cuts(program, cuts), nodes):
        pass


def test_a_tree_by_hand():
    proves(knapsack(), Fraction(-5, 2) - Fraction(1, 10**9), GOOD)
    with pytest.raises(RefutedError):  # the limit 3/2 counts as rounded, and has room
        proves(knapsack(), Fraction(-5, 2), GOOD)
    with pytest.raises(RefutedError, match=r"node 1 proves -2\.5 where -2\.49"):
        proves(knapsack(), Fraction(-249, 100), GOOD)


@pytest.mark.parametrize(
    "nodes",
    [
        GOOD[:-1],
        [*GOOD, GOOD[-1]],
        [GOOD[1]],
        [["branch", 2, 0], GOOD[1], GOOD[1]],
        [["branch", 7, 0], GOOD[1], GOOD[1]],
        [["branch", 0, 5], GOOD[1], GOOD[1]],
        [["branch", 0, -5], GOOD[1], GOOD[1]],
        [["dual", 0, [1], [-1]]],
        [["dual", 0, [0], [1]]],
        [["dual", 0, [], []]],
        [["farkas", 0, [0], [-1]]],
        [["farkas", 0, [], []]],
        [["branch", 0, 0]] * 50,
    ],
)
def test_what_proves_nothing(nodes):
    with pytest.raises(RefutedError):
        proves(knapsack(), Fraction(-249, 100), nodes)


def lines_of_code(module):
    """Lines of a module that are neither empty nor comments nor docstrings."""
    text = Path(module.__file__).read_text(encoding="utf-8")
    told = set()
    for node in ast.walk(ast.parse(text)):
        for each in getattr(node, "body", []) if isinstance(getattr(node, "body", None), list) else []:
            if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                told.update(range(each.lineno, each.end_lineno + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(bool(line.strip()) and line.strip()[0] != "#" and number not in told for number, line in lines)


def test_the_core_of_the_checker_can_be_read_in_an_evening():
    assert 100 < lines_of_code(check) < sum(map(lines_of_code, (check, cuts, program))) < 500


def data(**changed):
    good = LinearCertificate("three", "0" * 64, "exact", "0" * 64, Fraction(-5, 2), GOOD)
    return json.loads(good.text) | changed


def test_rows_that_contradict_each_other_by_rounding_prove_nothing():
    rows = tuple((limit, ((0, Fraction(1)),), limit) for limit in (Fraction(0.3), Fraction(0.1) + Fraction(0.2)))
    model = ExactModel(False, ((0, Fraction(1)),), Fraction(0), rows, (Fraction(0),), (Fraction(1),), (False,))
    for sign in (1, -1):
        with pytest.raises(RefutedError, match="where more than 0 is needed"):
            proves(model, 1000, [["farkas", 0, [0, 1], [sign, -sign]]])
    apart = (rows[0], (Fraction(1, 2), ((0, Fraction(1)),), Fraction(1, 2)))
    proves(dataclasses.replace(model, rows=apart), 1000, [["farkas", 0, [0, 1], [-1, 1]]])


@pytest.mark.parametrize("order", [1, -1])
def test_chains_of_rows_imply_bounds_in_either_order(order):
    one = Fraction(1)
    rows = [(one, ((number, -one), (number + 1, one)), None) for number in range(200)][::order]
    free = (None,) * 200
    model = ExactModel(
        False, ((200, one),), Fraction(0), tuple(rows), (Fraction(0), *free), (None, *free), (False,) * 201
    )
    program = program_of(model, Fraction(200))
    assert None not in (*program.lower, *program.upper)
    proves(model, 200, [["dual", 0, list(range(200)), [1] * 200]])


def test_files_are_read_back():
    read = LinearCertificate.from_data(data())
    assert (read.nodes, read.claim) == (GOOD, Fraction(-5, 2))


@pytest.mark.parametrize(
    "changed",
    [
        {"version": True},
        {"version": 3},
        {"version": 4},
        {"cuts": []},
        {"cuts": [], "version": 2},
        {"version": 2.0},
        {"nodes": [["fix", 0, [0], [-1]], *GOOD]},
        {"format": "x"},
        {"claim": "1/0"},
        {"claim": "nan"},
        {"claim": "1e400"},
        {"claim": 3},
        {"claim": "1" * 5000},
        {"claim": "1_0"},
        {"instance_digest": "0"},
        {"model_digest": 3},
        {"method": ["exact"]},
        {"nodes": []},
        {"nodes": {}},
        {"nodes": [[]]},
        {"nodes": [["dual", 0, [0], [1.0]]]},
        {"nodes": [["dual", 0, [0], [True]]]},
        {"nodes": [["dual", 0, [False], [1]]]},
        {"nodes": [["dual", -1, [0], [1]]]},
        {"nodes": [["dual", 10**9, [0], [1]]]},
        {"nodes": [["dual", 0, [0, 0], [1, 1]]]},
        {"nodes": [["dual", 0, [1, 0], [1, 1]]]},
        {"nodes": [["dual", 0, [-1], [1]]]},
        {"nodes": [["dual", 0, [0], [1, 1]]]},
        {"nodes": [["dual", 0, [0], [10**1500]]]},
        {"nodes": [["branch", 0, 0.5]]},
        {"nodes": [["branch", -1, 0]]},
        {"nodes": [["leaf"]]},
        {"nodes": ["dual"]},
        {"more": 1},
    ],
)
def test_odd_files_are_refused(changed):
    with pytest.raises(SolutionError):
        LinearCertificate.from_data(data(**changed))


HALF = ["mir", 2, [0], [-1], [], []]
"""Half of the only row of :func:`packing`: it says that a + b <= 1."""
CLOSED = [["dual", 0, [1], [1]]]


def packing(whole=(True, True, False)):
    """Maximise a + b with 2 a + 2 b + z <= 3, all of them from 0 to 1."""
    row = (None, ((0, Fraction(2)), (1, Fraction(2)), (2, Fraction(1))), Fraction(3))
    cost = tuple((column, Fraction(-1)) for column in (0, 1))
    return ExactModel(True, cost, Fraction(0), (row,), (Fraction(0),) * 3, (Fraction(1),) * 3, whole)


def test_cuts_by_hand():
    proves(packing(), -1, CLOSED, [HALF])
    proves(packing(), -1, CLOSED, [["cg", *HALF[1:]]])
    proves(packing(), -1, [["dual", 0, [2], [1]]], [HALF, ["mir", 1000, [0, 1], [-500, 3], [], []]])
    with pytest.raises(RefutedError):
        proves(packing(), Fraction(-999, 1000), CLOSED, [HALF])
    with pytest.raises(RefutedError, match="names row 1, but there are 1"):
        proves(packing(), -1, CLOSED)


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        (["mir", 2, [0, 1], [-1, 1], [], []], "cut 0 names row 1, but there are 1 before it"),
        (["mir", 2, [5], [-1], [], []], "names row 5"),
        (["mir", 2, [0], [1], [], []], "takes a limit of row 0 that it has not"),
        (["mir", 2, [0], [-1], [0], []], "takes a limit of row 0 that it has not"),
        (["mir", 1, [0], [-1], [], []], "rounds nothing"),
        (["mir", 2, [], [], [], []], "rounds nothing"),
        (["mir", 2, [0], [-1], [], [2]], "rounds nothing"),
        (["mir", 2**3999, [0], [-1], [], []], "where -1 is needed"),
        (["mir", 1, [0], [1 - 2**3999], [], [0, 1, 2]], "takes|rounds nothing|where -1 is needed"),
        (["cg", 4, [0], [-1], [], []], "where -1 is needed"),
    ],
)
def test_cuts_that_are_none(cut, message):
    with pytest.raises(RefutedError, match=message):
        proves(packing(), -1, CLOSED, [cut])


def test_what_is_not_whole_is_not_rounded():
    with pytest.raises(RefutedError):
        proves(packing(whole=(False, True, False)), -1, CLOSED, [HALF])
    # The continuous column counts from above, where it has a positive share: a Chvátal-Gomory cut may not drop it.
    with pytest.raises(RefutedError, match="rounds what is not whole"):
        proves(packing(), -1, CLOSED, [["cg", 5, [0], [-1], [], [2]]])


def test_files_with_cuts_are_read_back():
    good = LinearCertificate("x", "0" * 64, "exact", "0" * 64, Fraction(-1), CLOSED, [HALF], Fraction(-1, 2))
    written = json.loads(good.text)
    assert (written["version"], written["cutoff"]) == (3, "-1/2")
    assert LinearCertificate.from_data(written) == good
    for changed in (
        {"version": 2}, {"cuts": None}, {"cuts": {}}, {"cutoff": "-2"}, {"cutoff": "nan"}, {"cutoff": 0},
        *({"cuts": [cut]} for cut in (
            [], "mir", ["mir"], ["gmi", *HALF[1:]], ["mir", 0, *HALF[2:]], ["mir", -2, *HALF[2:]],
            ["mir", 2.0, *HALF[2:]], ["mir", True, *HALF[2:]], ["mir", 2**4000, *HALF[2:]],
            ["mir", 2, [0], [-1], [1], []], ["mir", 2, [0], [-1], [0, 0], []], ["mir", 2, [0], [-1], [], [1, 0]],
            ["mir", 2, [0], [-1], [], [-1]], ["mir", 2, [0, 0], [-1, 1], [], []], ["mir", 2, [0], [], [], []],
            ["mir", 2, [0], [2**4000], [], []], ["mir", 2, [0], ["1"], [], []], [*HALF, 0],
        )),
    ):  # fmt: skip
        with pytest.raises(SolutionError):
            LinearCertificate.from_data(written | changed)
    for missing in ("cuts", "cutoff"):
        with pytest.raises(SolutionError):
            LinearCertificate.from_data({name: value for name, value in written.items() if name != missing})


def test_cuts_close_what_takes_branching_without():
    rng, shorter, longer = random.Random(6), 0, 0
    for _ in range(60):
        model = random_model(rng)
        best = min(on_a_grid(model), default=None) if all(model.integer) else None
        if best is None:
            continue
        with_them, without = (prove(model, best - Fraction(1, 1000), 5.0, cuts) for cuts in (True, False))
        for tree in (with_them, without):
            proves(model, tree.claim, tree.nodes, tree.cuts, best - Fraction(1, 1000))
        assert not without.cuts
        shorter += len(with_them.nodes) < len(without.nodes)
        longer += len(with_them.nodes) > len(without.nodes)
    assert shorter > 2 * longer


def test_what_is_left_of_a_search_is_proven():
    """Where the time was short the claim is lower, and columns that were fixed at the higher one stay fixed."""
    rows = tuple(
        (None, tuple((j, Fraction(v)) for j, v in enumerate(values)), Fraction(sum(values), 2))
        for values in ([3, 5, 7, 9, 4, 6], [8, 2, 5, 3, 9, 7], [4, 9, 3, 8, 6, 5])
    )
    cost = tuple((j, Fraction(-v)) for j, v in enumerate((10, 13, 11, 15, 12, 14)))
    model = ExactModel(True, cost, Fraction(0), rows, (Fraction(0),) * 6, (Fraction(1),) * 6, (True,) * 6)
    for claim in range(-60, -20):
        limits = program_of(model, Fraction(claim)).fixed(0, {0: -1}, {}, {})
        lower = program_of(model, Fraction(claim - 1)).fixed(0, {0: -1}, {}, {})
        for side, column, limit in limits:
            (tighter,) = [value for s, c, value in lower if (s, c) == (side, column)]
            assert tighter <= limit if side else tighter >= limit
    # The multipliers prove -58: at -60 nothing is left, whatever else is known of the columns.
    limits = program_of(model, Fraction(-60)).fixed(0, {0: -1}, {}, {})
    assert {side for side, _, _ in limits} == {0}
    assert all(limit > 1 for _, _, limit in limits)


def test_reduced_costs_fix_columns():
    """With the multiplier -1, a and b have the reduced cost -1 and are at 1: where one is 0, 5/2 is left at most."""
    model, fix = knapsack(), ["fix", 0, [0], [-1]]
    short = [["dual", 0, [0], [-2]]]
    claim = Fraction(-5, 2) - Fraction(1, 10**9)
    program = program_of(model, claim)
    assert program.fixed(0, {0: -1}, {}, {}) == [(0, 0, 1), (0, 1, 1)]
    proves(model, claim, [fix, ["farkas", 0, [0], [-1]]])
    for nodes in ([["farkas", 0, [0], [-1]]], [fix], [fix, *short], [["fix", 0, [0], [1]], ["farkas", 0, [0], [-1]]]):
        with pytest.raises(RefutedError):
            proves(model, claim, nodes)
    with pytest.raises(RefutedError, match="node 0 names row 5"):
        proves(model, claim, [["fix", 0, [5], [-1]], ["farkas", 0, [0], [-1]]])
    # Where it is asked for more than there is, 0 is left for both.
    with pytest.raises(RefutedError):
        proves(model, Fraction(-249, 100), [fix, ["farkas", 0, [0], [-1]]])
    assert plain_tree(program, [fix, ["farkas", 0, [0], [-1]]]) == [
        ["branch", 0, 0], ["dual", 0, [0], [-1]], ["branch", 1, 0], ["dual", 0, [0], [-1]], ["farkas", 0, [0], [-1]],
    ]  # fmt: skip


def on_a_grid(model):
    """Objectives of some feasible points: all whole columns, and the others at multiples of a sixth up to 11."""
    given = [*model.cost, *(term for _, terms, _ in model.rows for term in terms)]
    unit = math.lcm(*(Fraction(value).denominator for _, value in given))
    ranges = [
        range(3 * int(low), 3 * int(high) + 1, 3) if whole else range(34)
        for low, high, whole in zip(model.lower, model.upper, model.integer, strict=True)
    ]  # of thirds

    def counted(terms):
        return [(j, int(value * unit)) for j, value in terms]

    rows = [
        (-math.inf if low is None else 3 * unit * low, counted(terms), math.inf if high is None else 3 * unit * high)
        for low, terms, high in model.rows
    ]
    cost = counted(model.cost)
    for point in itertools.product(*ranges):
        if all(low <= sum([v * point[j] for j, v in terms]) <= high for low, terms, high in rows):
            yield model.offset + Fraction(sum(v * point[j] for j, v in cost), 3 * unit)


def forged_cuts(rng, cuts):
    """Cuts of which some numbers are others."""
    forged = [[kind, divisor, list(rows), list(times), list(apart), list(above)]
              for kind, divisor, rows, times, apart, above in cuts]  # fmt: skip
    for cut in forged:
        place = rng.randrange(len(cut[2])) if cut[2] else 0
        match rng.choice(("none", "kind", "divisor", "times", "times", "apart", "above", "row")):
            case "kind":
                cut[0] = rng.choice(("cg", "mir"))
            case "divisor":
                cut[1] = rng.choice((1, cut[1] + 1, cut[1] * 2, 2**70))
            case "times" if cut[2]:
                cut[3][place] = rng.choice((0, -cut[3][place], cut[3][place] + 1, 2**70))
            case "apart" if cut[2]:
                cut[4] = sorted({*cut[4]} ^ {cut[2][place]})
            case "above":
                cut[5] = sorted({*cut[5]} ^ {rng.randrange(4)})
            case "row" if cut[2]:
                cut[2][place] += rng.choice((0, 1))
    return forged


def attacks(rng, model, count):
    """Trees made at random, and by the search for claims that are too good: whatever is accepted must be true."""
    points = list(on_a_grid(model)) if sum(not whole for whole in model.integer) <= 2 else []
    best = min(points, default=None)
    accepted = 0
    for _ in range(count):
        base = best if best is not None else Fraction(rng.randrange(-20, 20))
        claim = base + Fraction(rng.randrange(-8, 9), rng.choice((1, 2, 3, 1000)))
        tree = prove(model, claim, 2.0)
        forged = [list(node) for node in tree.nodes]
        for node in forged:
            if rng.random() < 0.3:
                if node[0] == "branch":
                    node[rng.choice((1, 2))] += rng.choice((-1, 1))
                elif node[3]:
                    place = rng.randrange(len(node[3]))
                    node[3] = [*node[3]]
                    node[3][place] += rng.choice((-1, 1, node[3][place], -2 * node[3][place]))
        cuts = forged_cuts(rng, tree.cuts)
        for nodes, said, used in (
            (tree.nodes, tree.claim, tree.cuts), (tree.nodes, claim, tree.cuts), (forged, claim, tree.cuts),
            (tree.nodes, claim, cuts), (forged, claim, cuts),
        ):  # fmt: skip
            if said is None or not nodes or any(n[0] == "branch" and n[1] < 0 for n in nodes):
                continue
            try:
                proves(model, said, nodes, used, claim)
            except RefutedError:
                continue
            accepted += 1
            assert best is None or said <= best, (model, said, nodes)
    return accepted


@pytest.mark.parametrize("seeds", [range(200), slow(range(200, 8000))])
def test_whole_numbers_say_what_fractions_do(seeds):
    for seed in seeds:
        agree(seed)


def agree(seed):
    rng = random.Random(seed)
    model, claim = open_model(rng), Fraction(rng.randrange(-50, 50))
    program, (rows, lower, upper, lost) = program_of(model, claim), loosened(model, claim)

    def fractions(values, unit):
        return [None if value is None else Fraction(value, unit) for value in values]

    found_lower, found_upper = fractions(program.lower, program.grid), fractions(program.upper, program.grid)
    assert (found_lower, found_upper, program.lost) == (lower, upper, lost)
    for (low, terms, high), expected in zip(program.rows, rows, strict=True):
        found = tuple((column, Fraction(value, program.unit)) for column, value in terms)
        assert (*fractions([low], program.unit), found, *fractions([high], program.unit)) == expected


def test_nothing_false_is_accepted():
    rng = random.Random(1)
    assert sum(attacks(rng, random_model(rng), 2) for _ in range(30)) > 30


@pytest.mark.slow
def test_nothing_false_is_accepted_of_many():
    rng = random.Random(2)
    assert sum(attacks(rng, random_model(rng), 6) for _ in range(600)) > 1000


def test_an_interior_point_method_begins_where_programs_are_large(monkeypatch):
    monkeypatch.setattr(tree_search, "_LARGE", 0)
    began = []
    own = tree_search._Search._begin
    monkeypatch.setattr(tree_search._Search, "_begin", lambda *given: began.append(own(*given)) or began[-1])
    rng, proven = random.Random(4), 0
    for _ in range(40):
        model = random_model(rng)
        best = min(on_a_grid(model), default=None) if all(model.integer) else None
        if best is not None:
            tree = prove(model, best - Fraction(1, 1000))
            assert tree.complete
            proves(model, tree.claim, tree.nodes)
            proven += 1
    assert proven > 5
    assert {True, False} == set(began)


def test_models_are_read_without_rounding():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 10), domain=pyo.Integers)
    model.y = pyo.Var()
    model.e = pyo.Expression(expr=2 * model.x + 1)
    model.one = pyo.Constraint(expr=0.1 * model.x + 0.2 * model.x + (model.y - 3) / 3 <= 1)
    model.two = pyo.Constraint(expr=(1, model.e - model.y, 7))
    model.three = pyo.Constraint(expr=-(model.x + model.y) == 2 - model.x)
    model.objective = pyo.Objective(expr=model.e + 0.5, sense=pyo.maximize)
    found = exact_model(model)
    assert found.rows[0] == (
        None, ((0, Fraction(0.1) + Fraction(0.2)), (1, Fraction(1, 3))), Fraction(2)
    )  # fmt: skip
    assert found.rows[1] == (Fraction(0), ((0, Fraction(2)), (1, Fraction(-1))), Fraction(6))
    assert found.rows[2] == (Fraction(2), ((1, Fraction(-1)),), Fraction(2))
    assert (found.cost, found.offset, found.maximised) == (((0, Fraction(-2)),), Fraction(-3, 2), True)
    assert (found.lower, found.upper, found.integer) == ((0, None), (10, None), (True, False))


def test_what_is_not_linear_is_refused():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 10))
    model.row = pyo.Constraint(expr=model.x**2 <= 3)
    model.objective = pyo.Objective(expr=model.x)
    with pytest.raises(NotApplicableError, match="not linear"):
        exact_model(model)


@pytest.mark.parametrize("other", [0.1, 3, Fraction(1, 3)])
def test_rationals_stay_rational_beside_floats(other):
    for operation in (float.__add__, float.__sub__, float.__mul__, float.__truediv__):
        name = operation.__name__
        for one, two in ((_Rational(7, 5), other), (other, _Rational(7, 5))):
            symbol = {"__add__": "+", "__sub__": "-", "__mul__": "*", "__truediv__": "/"}[name]
            found = eval(f"one {symbol} two", {"one": one, "two": two})
            assert isinstance(found, Fraction)
            assert found == eval(f"one {symbol} two", {"one": Fraction(one), "two": Fraction(two)})


# Certificates of instances -------------------------------------------------------------------------------------------

SMALL = [
    "topology/tiny-n4-d2",
    "codesign/tiny-tables-n4-d2",
    "scheduling/tiny-gangs",
    "scheduling/tiny-fair",
    "compression/sfb-random-n60",
    "deployment/strategies-tree-n60",
    "aggregation/tree-tiny-n6-k2",
    "aggregation/registers-tiny-n8-r3",
]


@pytest.mark.parametrize("name", SMALL)
def test_small_instances_are_certified(name, tmp_path):
    instance = ddlopt.load(name)
    result, certificate = ddlopt.certify(instance, out=tmp_path / "proof.json", time_limit=30)
    proven = ddlopt.check_certificate(instance, tmp_path / "proof.json")
    sign = 1 if instance.sense == "minimize" else -1
    objective = ddlopt.check(instance, result.solution, exact=True).objective
    assert 0 <= sign * (objective - proven.bound) <= Fraction(1, 10**4) * abs(objective)
    assert str(result.evidence) in ("certificate", "combinatorial")
    assert proven == proofs.check(instance, certificate)


def linear_certificate(name="scheduling/tiny-fair"):
    instance = ddlopt.load(name)
    certificate, closed = proofs.prove(instance, best_known(instance), 1e-4, 20, "exact")
    assert closed
    return instance, certificate


def test_certificates_of_others_are_refused():
    instance, good = linear_certificate()
    other = ddlopt.load("scheduling/tiny-gangs")
    with pytest.raises(SolutionError, match="is of 'tiny-fair'"):
        ddlopt.check_certificate(other, good)
    for field, value, message in (
        ("method", "gadget", "is no exact method"),
        ("method", "exact:horizon=3", "is no exact method"),
    ):
        forged = LinearCertificate(**{**vars(good), field: value})
        with pytest.raises(SolutionError, match=message):
            ddlopt.check_certificate(instance, forged)


def test_a_formulation_that_leaves_out_solutions_proves_nothing():
    """``exact`` covers jobs that share bandwidth by another method; its formulation has no better schedule than 2.1854.

    One of 2.29 is known, and a proof over the formulation once was accepted.
    """
    shared = ddlopt.load("scheduling/tiny-shared")
    with pytest.raises(SolutionError, match="exact has no formulation of 'tiny-shared': bandwidth is shared"):
        proofs.formulation_by(shared, "exact")
    forged = LinearCertificate("tiny-shared", shared.digest, "exact", "0" * 64, Fraction(-2), [["dual", 0, [], []]])
    with pytest.raises(SolutionError, match="bandwidth is shared"):
        ddlopt.check_certificate(shared, forged)


def test_coefficients_may_differ_in_a_digit_if_the_tree_still_proves_the_claim():
    instance, good = linear_certificate()
    elsewhere = {**vars(good), "model_digest": "0" * 64}
    assert ddlopt.check_certificate(instance, LinearCertificate(**elsewhere)).bound
    with pytest.raises(SolutionError, match="is of another formulation"):
        ddlopt.check_certificate(instance, LinearCertificate(**{**elsewhere, "claim": good.claim * Fraction(9, 10)}))


def test_claims_that_are_too_good_are_refused():
    instance, good = linear_certificate()
    with pytest.raises(RefutedError):
        ddlopt.check_certificate(instance, LinearCertificate(**{**vars(good), "claim": good.claim * Fraction(9, 10)}))
    bert = ddlopt.load("topology/bert-n12-d4")
    certificate, closed = proofs.prove(bert, best_known(bert), 0.0, 20, "combinatorial")
    assert closed
    too_good = proofs.CombinatorialCertificate(bert.name, bert.digest, certificate.claim + Fraction(1, 10**40))
    with pytest.raises(RefutedError, match=r"is .*, not"):
        ddlopt.check_certificate(bert, too_good)


def test_claims_are_turned_into_bounds_of_the_instance():
    instance = ddlopt.load("aggregation/tree-tiny-n6-k2")
    formulation = proofs.formulation_by(instance, "tree")
    for target in (Fraction(1, 50), Fraction(1, 3)):
        claim = claim_for(formulation, instance, False, target)
        assert target <= bound_of(formulation, instance, False, claim) <= target * (1 + Fraction(1, 10**14))
