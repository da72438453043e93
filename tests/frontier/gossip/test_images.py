"""Nodes of a proof that are images of earlier ones: what takes the one into the other, and what does not."""

from fractions import Fraction

import pytest

from ddlopt.certificates.gossip.matchings import MatchingsCertificate
from ddlopt.certificates.gossip.matchings.regions import Regions
from ddlopt.models.errors import RefutedError
from ddlopt.models.gossip.matchings.instance import MatchingsInstance
from ddlopt.models.gossip.network import Network
from ddlopt.solvers import proofs

ALONE = MatchingsInstance(
    name="alone", network=Network(nodes=2, edges=[(0, 1)]), budget=0.5, activation="single", matchings=((0,),)
)
RING = MatchingsInstance(name="ring", network=Network(nodes=4, edges=[(0, 1), (1, 2), (2, 3), (0, 3)]), budget=1.0)
TURNED = [3, 0, 1, 2]
"""Edge 1 to edge 0, 2 to 1, 3 to 2 and 0 to 3."""


def ring_of(node):
    """Edge 0 is at the first level; else edge 1 is, which is the node that is asked; else neither."""
    regions = Regions(RING)
    ones = regions.at_level(regions.root, 0), regions.later(regions.root, (0, 1))
    first, last = (["leaf", [[1, 1, -1, -1]], [0] * 4, [0] * len(regions.polytope(each).rows)] for each in ones)
    nodes = [["edge", 0], first, ["edge", 1], node, last]
    return MatchingsCertificate("ring", RING.digest, Fraction(0), (), nodes)


def test_an_image_needs_no_proof_of_its_own():
    assert proofs.check(RING, ring_of(["image", 1, TURNED])).nodes == 5


@pytest.mark.parametrize(
    ("node", "line"),
    [
        (["image", 1, [0, 1, 2, 3]], "does not take it into node 1"),
        (["image", 1, [1, 0, 2, 3]], "what is no edge"),
        (["image", 1, [1, 2, 3, 3]], "no permutation"),
        (["image", 1, [1, 2, 3]], "no permutation"),
        (["image", 1, [1, 2, 3, 4]], "no permutation"),
        (["image", 0, TURNED], "of which it is a part"),
        (["image", 2, TURNED], "of which it is a part"),
        (["image", 3, TURNED], "no earlier one"),
        (["image", 4, TURNED], "no earlier one"),
        (["image", -1, TURNED], "no earlier one"),
    ],
)
def test_what_is_no_image(node, line):
    with pytest.raises(RefutedError, match=line):
        proofs.check(RING, ring_of(node))


def test_images_need_levels():
    halves = (["split", 0, 2**18], ["leaf", [[1, -1]], [], [0, 0]], ["image", 1, [1, 0]])
    with pytest.raises(RefutedError, match="of use"):
        proofs.check(ALONE, MatchingsCertificate("alone", ALONE.digest, Fraction(0), (), halves))
