"""What is written in VIPR's format, given to ``viprchk`` of the format's authors, where it is on the path.

It is one file of https://github.com/ambros-gleixner/VIPR: ``g++ -O2 viprchk.cpp -o viprchk -lgmpxx -lgmp``.
"""

import random
import shutil
import subprocess
from collections import Counter

import pytest
from linear_programs import open_model, random_model
from vipr_cases import HAND, changes, proofs_of, written
from vipr_checker import ViprError, check_vipr
from volume import slow

import ddlopt
from ddlopt import instances
from ddlopt.instances.library import certificates
from ddlopt.models.errors import RefutedError
from ddlopt.solvers import proofs

CHECKER = shutil.which("viprchk")
pytestmark = pytest.mark.skipif(CHECKER is None, reason="viprchk is not on the path; see the top of the file")


def verdict(text, path):
    """``verified``, ``nothing`` where the claim is no constraint, or ``refused``."""
    path.write_text(text)
    ended = subprocess.run([CHECKER, path], capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        return "refused"
    if "RTP is a tautology" in ended.stdout:
        return "nothing"
    assert "Successfully verified" in ended.stdout + ended.stderr
    return "verified"


def test_by_hand(tmp_path):
    path = tmp_path / "proof.vipr"
    assert verdict(HAND, path) == "verified"
    assert verdict(HAND.replace("lin 2 3 1 0 -1", "lin 2 3 1 0 -2"), path) == "refused"


@pytest.mark.parametrize("seeds", [range(80), slow(range(80, 800))])
def test_random_programs_and_what_was_changed_in_them(seeds, tmp_path):
    """With cuts and without; of what was changed it says what the checker from the specification does."""
    path, told, kinds = tmp_path / "proof.vipr", Counter(), Counter()
    for seed in seeds:
        rng = random.Random(seed)
        model = (random_model, open_model)[seed % 8 == 0](rng)
        for tree, cutoff in proofs_of(model, rng, cuts=seed % 8 > 0):
            try:
                text, _ = written(model, tree.claim, tree.nodes, tree.cuts, cutoff)
            except RefutedError:  # the claim is not what the tree proves to the last digit
                continue
            told[verdict(text, path)] += 1
            kinds.update(cut[0] for cut in tree.cuts)
            for changed in changes(text, rng, 1):
                told["changed"] += 1
                try:
                    check_vipr(changed)
                except ViprError:
                    assert verdict(changed, path) == "refused"
                else:
                    assert verdict(changed, path) != "refused"
    assert told["refused"] == 0
    assert told["verified"] > 10
    assert told["changed"] > 10
    assert kinds["mir"] + kinds["cg"] > 3


@pytest.mark.parametrize("name", ["scheduling/tiny-pollux", "scheduling/slot-rigid", "aggregation/hot-tiny-p9-s2"])
def test_instances_with_cuts(name, tmp_path):
    instance, path = instances.load(name), tmp_path / "proof.vipr"
    method = next(iter(proofs.formulations(instance)))
    proof, _ = proofs.prove(instance, instances.best(name), 1e-4, 60.0, method)
    assert proof.cuts
    ddlopt.check_certificate(instance, proof, vipr=path)
    text = path.read_text()
    assert verdict(text, path) == "verified"
    for changed in changes(text, random.Random(2), 5):
        with pytest.raises(ViprError):
            check_vipr(changed)
        assert verdict(changed, path) == "refused"


@pytest.mark.parametrize(
    "name", ["scheduling/tiny-contention", "gossip/circulant-n9-d4-gap", "aggregation/hot-tiny-p9-s2"]
)
def test_bundled_trees(name, tmp_path):
    path = tmp_path / "proof.vipr"
    ddlopt.check_certificate(name, certificates.file_of(name), vipr=path)
    assert verdict(path.read_text(), path) == "verified"
