"""Links made of closed rings: permutations, and where they are asked for."""

import pytest

import ddlopt
from ddlopt.frontier.codesign.closed_columns import RingStart, starts_for
from ddlopt.models.codesign import job_of
from ddlopt.solvers import chain
from ddlopt.solvers.codesign.data_parallel import data_parallel
from ddlopt.solvers.codesign.quick_links import STEPS


@pytest.mark.parametrize("optics", ["one_way", "duplex"])
def test_columns_of_closed_rings_are_permutations(optics):
    instance = ddlopt.load("codesign/bert-n12-d4").model_copy(update={"optics": optics})
    job = job_of(instance, data_parallel(instance))
    starts = [each for each in starts_for(job, 0) if isinstance(each, RingStart)]
    assert starts
    for start in starts:
        for column in start.heads.T:
            assert sorted(column.tolist()) == list(range(12))
        for orders in start.rings.values():
            for order in orders:
                assert all(order[k] in start.heads[order[k - 1]] for k in range(1, len(order)))


def test_bound_guided_asks_for_them():
    instance = ddlopt.load("codesign/tiny-overlap-n4-d2")
    (step,) = chain.steps(STEPS, "links")
    assert any(isinstance(each, RingStart) for each in step.make(job_of(instance, data_parallel(instance)), 0))
