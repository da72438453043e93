"""Labels, messages and cases of proofs for one or two gradients, by hand."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from ddlopt.certificates.compression.forward.certificate import ForwardCertificate
from ddlopt.certificates.compression.label_proof.labels import follow, ways_of
from ddlopt.certificates.compression.label_proof.parts import Parting
from ddlopt.certificates.compression.levels.certificate import LevelCertificate
from ddlopt.certificates.compression.timeline.certificate import TimelineCertificate
from ddlopt.models.compression import CompressionInstance, Gradient, Option, Stage
from ddlopt.models.compression.forward.instance import ForwardInstance
from ddlopt.models.compression.levels.instance import ExponentialCurve, GradedGradient, LevelInstance
from ddlopt.models.errors import RefutedError
from ddlopt.solvers import proofs

ABOVE = Fraction(1, 10**5)
GRADIENTS = tuple(Gradient(name=f"g{ready}", shape=(1,), ready_s=ready, menu=0) for ready in (1, 2))
PLAIN = Option(label="plain", compressor="none", wire_s=4)
SMALL = Option(label="small", compressor="dgc", encode_s=1, wire_s=1, error=1)


def two(*menu, **more):
    return CompressionInstance(**({"name": "two", "gradients": GRADIENTS, "menus": (menu,)} | more))


def lanes_of(instance, claim=Fraction(6)):
    return TimelineCertificate("two", instance.digest, claim, [], []).lanes(instance)


def test_messages_on_no_better_plan_are_left_out():
    """Below 6 the second is small, as it ends at 6 else; of an error of 1 nothing is left to the first then."""
    lanes = lanes_of(two(PLAIN, SMALL, error_budget=1))
    arcs = ways_of(lanes, lanes.labels >= 0, ()).arcs
    assert (arcs.tail.tolist(), arcs.head.tolist(), arcs.label.tolist()) == ([0, 1], [1, 2], [0, 1])


def test_the_wire_waits_for_the_next_message():
    """Free at 1.5, but nothing is there before 2, and encoded at 3."""
    for encode, free in ((0, 2), (1, 3)):
        menus = ((Option(label="a", wire_s=0.5),), (Option(label="b", compressor="dgc", encode_s=encode, wire_s=1),))
        gradients = [each.model_copy(update={"menu": place}) for place, each in enumerate(GRADIENTS)]
        lanes = lanes_of(two(gradients=tuple(gradients), menus=menus))
        labels = dict(follow(lanes, ways_of(lanes, lanes.labels >= 0, ())))
        assert (labels[1].T * 2.0**lanes.time_exponent).tolist() == [[0, free, 0]]


@pytest.mark.parametrize("encode", [0, 1])
def test_of_gradients_with_the_same_options_later_ones_are_sent_shorter(encode):
    """A small one before a plain one is no faster than the other way round, whether or not the plain one is encoded."""
    plain = PLAIN.model_copy(update={"encode_s": encode, "compressor": "dgc" if encode else "none"})
    parting = Parting(lanes_of(two(plain, SMALL, error_budget=1)))
    assert parting.whole.all()
    some, others = parting.parts(parting.whole, 0, [1])
    assert (some.tolist(), others.tolist()) == ([[False, True], [False, True]], [[True, False], [True, True]])
    some, others = parting.parts(parting.whole, 1, [0])
    assert (some.tolist(), others.tolist()) == ([[True, False], [True, False]], [[True, True], [False, True]])


def test_on_two_lanes_no_order_is_better():
    menu = [
        Option(label="wire", stages=(Stage(lane="wire", busy_s=4),), wire_s=0),
        Option(label="cpu", stages=(Stage(lane="wire"), Stage(lane="cpu", busy_s=5)), wire_s=0),
    ]
    parting = Parting(lanes_of(two(*menu, lanes=("wire", "cpu"))))
    for gradient in range(2):
        some, others = parting.parts(parting.whole, gradient, [1])
        assert some[1 - gradient].all()
        assert others[1 - gradient].all()


def test_an_option_that_another_is_nowhere_larger_than_is_left_out():
    worse = SMALL.model_copy(update={"label": "worse", "wire_s": 2})
    assert Parting(lanes_of(two(PLAIN, SMALL, worse, error_budget=1))).whole.tolist() == [[True, True, False]] * 2
    same = SMALL.model_copy(update={"label": "same"})  # of the same ones the first stays
    assert Parting(lanes_of(two(PLAIN, SMALL, same, error_budget=1))).whole.tolist() == [[True, True, False]] * 2
    errs = two(PLAIN, PLAIN.model_copy(update={"label": "errs", "compressor": "dgc", "error": 1}))
    assert Parting(lanes_of(errs)).whole.tolist() == [[True, False]] * 2  # no budget: errors do not count


@pytest.mark.parametrize("claim", [Fraction(1, 1000), Fraction(1, 2), Fraction(1), Fraction(6), Fraction(10**6)])
def test_claims_have_as_many_digits_whatever_their_size(claim):
    assert 2**31 <= lanes_of(two(PLAIN), claim).time_most <= 2**33


def test_buckets_end_where_they_are_full():
    for most, ends in ((None, [2, 2]), (8, [2, 2]), (7, [1, 2])):
        fused = two(PLAIN, fusion=True, largest_bucket_bytes=most)
        assert lanes_of(fused).ends.tolist() == ends
    assert lanes_of(two(PLAIN)).ends.tolist() == [1, 2]


def test_the_forward_pass_is_added_to_what_is_ready():
    instance = ForwardInstance(name="forward", timeline=two(PLAIN), forward_s=(1, 0.5))
    lanes = ForwardCertificate("forward", instance.digest, Fraction(6), [], []).lanes(instance)
    assert (lanes.ready * 2.0**lanes.time_exponent).tolist() == [1 + 1, 2 + 1.5]


def test_levels_by_hand():
    """Level 1: an error of 16 / 4, and 1 + 3/4 + 1 + 2 seconds; level 2: 16 / 16, and 1 + 1 + 1 + 4; level 0: 16."""
    gradient = GradedGradient(
        name="g", shape=(1,), compressor="qsgd", ready_s=1, curve=ExponentialCurve(lowest=0, highest=2, scale=16),
        encode_s=0.5, encode_s_per_level=0.25, launch_s=1, wire_s_per_level=2,
    )  # fmt: skip
    for goal, budget, best in (
        ("time", 4, Fraction(19, 4)), ("time", 3, 7), ("time", 16, Fraction(5, 2)),
        ("error", 5, 4), ("error", 7, 1), ("error", 4, 16),
    ):  # fmt: skip
        budgets = {"error_budget" if goal == "time" else "time_budget_s": budget}
        instance = LevelInstance(name="levels", gradients=(gradient,), goal=goal, **budgets)
        good = LevelCertificate("levels", instance.digest, Fraction(best), [], [["labels", []]])
        assert proofs.check(instance, good).bound == best
        with pytest.raises(RefutedError):
            proofs.check(instance, replace(good, claim=best + ABOVE))
    assert np.array_equal(good.lanes(instance).ends, [1])
