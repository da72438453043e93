"""Trees in VIPR's format: a checker that knows nothing but the format accepts them, and nothing that was changed."""

import random
from collections import Counter
from fractions import Fraction

import pytest
from linear_programs import GOOD, knapsack, open_model, random_model
from refusals import one_line
from vipr_cases import HAND, changes, proofs_of, written
from vipr_checker import ViprError, check_vipr
from volume import slow

import ddlopt
from ddlopt.certificates.linear import ExactModel, program_of
from ddlopt.instances.library import certificates
from ddlopt.models.errors import NotApplicableError, RefutedError
from ddlopt.models.reading import read_text
from ddlopt.solvers.proofs import read


def test_the_checker_by_hand():
    assert check_vipr(HAND) == (3, None)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("rnd 2 2 1 1 -1", "lin 2 2 1 1 -1"),  # at least 1/2 only
        ("rnd 2 2 1 1 -1", "rnd 2 2 1 1 1"),  # adds up both sides
        ("rnd 2 2 1 1 -1", "rnd 2 2 1 2 -1"),  # an index twice
        ("rnd 2 2 1 1 -1", "asm"),  # what follows rests on it
        ("INT 2 0 1", "INT 1 1"),
        ("lin 1 4 1", "lin 1 5 1"),  # not yet derived
        ("lin 2 3 1 0 -1", "lin 2 3 1 0 -2"),
        ("lin 2 3 1 0 -1", "uns 3 0 3 2"),  # no two cases
        ("all G 3 OBJ", "all G 2 OBJ"),
        ("RTP range 3 inf", "RTP range 3 3"),  # no solution
        ("OBJ min", "OBJ max"),
        ("DER 3", "DER 2"),
        ("DER 3", "DER 4"),
    ],
)
def test_the_checker_refuses(one, other):
    assert one in HAND
    with pytest.raises(ViprError):
        check_vipr(HAND.replace(one, other))


def test_a_tree_by_hand():
    text, target = written(knapsack(), Fraction(-5, 2) - Fraction(1, 10**9), GOOD)
    assert check_vipr(text) == (target, None)
    assert text.count("asm") == 4
    assert text.count("uns") == 2


def accepted(seeds):
    """How many trees over random programs there were, and in how many bounds were implied, rounded, split, fixed."""
    counts = [0, 0, 0, 0, 0]
    for seed in seeds:
        rng = random.Random(seed)
        model = (random_model, open_model)[seed % 2](rng)
        for tree, _ in proofs_of(model, rng):
            claim, nodes = tree.claim, tree.nodes
            try:
                text, target = written(model, claim, nodes)
            except RefutedError:
                continue
            assert check_vipr(text) == (target, None)
            implied = bool(program_of(model, claim).implied) and " lin " in text
            fixed = any(node[0] == "fix" for node in nodes)
            for place, holds in enumerate((True, implied, " rnd " in text, " uns " in text, fixed)):
                counts[place] += holds
    return counts


@pytest.mark.parametrize(("kind", "cases"), [("cg", 0), ("mir", 1)])
def test_a_cut_by_hand(kind, cases):
    """2 a + 2 b + z <= 3, maximise a + b: at most one of them is 1."""
    row = (None, ((0, Fraction(2)), (1, Fraction(2)), (2, Fraction(1))), Fraction(3))
    cost = tuple((column, Fraction(-1)) for column in (0, 1))
    bounds = (Fraction(0),) * 3, (Fraction(1),) * 3
    model = ExactModel(True, cost, Fraction(0), (row,), *bounds, (True, True, False))
    text, target = written(model, Fraction(-1), [["dual", 0, [1], [1]]], [[kind, 2, [0], [-1], [], []]])
    assert check_vipr(text) == (target, None)
    assert (text.count(" asm "), text.count(" uns ")) == (2 * cases, cases)


def test_trees_over_random_programs():
    assert min(accepted(range(40))) > 3


@pytest.mark.parametrize("seeds", [range(60), slow(range(60, 2000))])
def test_cuts_over_random_programs(seeds):
    kinds = Counter()
    for seed in seeds:
        rng = random.Random(seed)
        model = random_model(rng)
        for tree, cutoff in proofs_of(model, rng, cuts=True):
            if tree.cuts:
                text, target = written(model, tree.claim, tree.nodes, tree.cuts, cutoff)
                assert check_vipr(text) == (target, None)
                kinds.update((cut[0], bool(cut[4])) for cut in tree.cuts)
    assert kinds["mir", True] > 3
    assert kinds["mir", False] + kinds["cg", False] > 1


@pytest.mark.slow
def test_trees_over_many_random_programs():
    assert min(accepted(range(1000, 1700))) > 50


BUNDLED = [
    "scheduling/departures-half",
    "scheduling/tiny-contention",
    "aggregation/hot-tiny-p9-s2",
    "gossip/circulant-n9-d4-gap",
    slow("aggregation/graph-tiny-utilization"),
    slow("topology/tiny-n5-d3-duplex"),
    slow("scheduling/completion-j12-t30-g8"),
    slow("compression/sfb-resnet50-b4-w2-10g-memory"),
]


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_proofs(name, tmp_path):
    file = certificates.file_of(name)
    ddlopt.check_certificate(name, file, vipr=tmp_path / "proof.vipr.gz")
    text = read_text(tmp_path / "proof.vipr.gz")
    assert f"% {name}, SHA-256 {ddlopt.load(name).digest}" in text
    low, high = check_vipr(text)
    assert high is None
    told = next(line for line in text.splitlines() if line.startswith("% minimum"))
    assert f"are at least {read(file, ddlopt.load(name)).claim};" in told
    assert low + Fraction(told.split()[3]) == read(file, ddlopt.load(name)).claim
    changed = list(changes(text, random.Random(1), 6))
    assert changed
    for each in changed:
        with pytest.raises(ViprError):
            check_vipr(each)


def test_other_proofs_are_no_trees(tmp_path):
    name = "topology/tiny-n4-d2"
    with one_line(NotApplicableError, "VIPR's format takes a tree over a formulation; this proof is of another kind"):
        ddlopt.check_certificate(name, certificates.file_of(name), vipr=tmp_path / "proof.vipr")
    assert not list(tmp_path.iterdir())


def test_on_the_command_line(call, tmp_path):
    name = "scheduling/tiny-contention"
    code, out, _ = call("check", name, "--certificate", certificates.file_of(name), "--vipr", tmp_path / "proof.vipr")
    assert (code, "bound:" in out) == (0, True)
    assert check_vipr((tmp_path / "proof.vipr").read_text())[0] is not None
    code, _, err = call("check", name, "solution.json", "--vipr", tmp_path / "proof.vipr")
    assert code == 2
    assert "is for --certificate, and so is --vipr" in " ".join(err.split())
