"""What a policy is told of a slot, and the widths that it may take, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from ddlopt.solvers.scheduling.online.engine import State


class Speeds:
    """Mini-batches per slot: 2 per worker."""

    narrowest, widest = np.array([1, 2, 1, 1]), np.array([4, 4, 3, 2])

    def __call__(self, jobs, widths):
        return 2.0 * np.asarray(widths)


def state(capacity=(8.0,), demand=((1.0,), (2.0,), (1.0,), (3.0,)), **more):
    demand = np.array(demand)
    usual = {
        "wanted": np.array([10.0, 20.0, 30.0, 40.0]), "done": np.array([1.0, 2.0, 3.0, 4.0]),
        "served": np.array([0.0, 1.0, 1.0, 0.0]), "width": np.array([1, 2, 0, 1]), "arrival": np.zeros(4, dtype=int),
        "last": np.full(4, 9), "active": np.array([1, 2]), "capacity": np.array(capacity),
    }  # fmt: skip
    pool = SimpleNamespace(demand=demand, capacity=np.array(capacity))
    return State(None, Speeds(), pool, **usual | more)


def test_what_is_left_and_how_fast_it_goes():
    here = state()
    assert (here.left.tolist(), here.fastest.tolist()) == ([18.0, 27.0], [8.0, 6.0])
    typed = state(types=SimpleNamespace(paces=np.array([[1, 1], [1, 3], [0.5, 0.25], [1, 1]])))
    assert typed.fastest.tolist() == [24.0, 3.0]


def test_a_change_costs_a_part_of_the_slot_where_the_job_has_run():
    jobs, widths = np.array([0, 1, 1, 2]), np.array([3, 2, 3, 1])
    assert state().progress(jobs, widths).tolist() == [6.0, 4.0, 6.0, 2.0]
    slow = state(after_change=np.array([0.5, 0.5, 0.25, 0.5]))
    assert slow.progress(jobs, widths).tolist() == [6.0, 4.0, 3.0, 0.5]


@pytest.mark.parametrize(
    ("asked", "options", "chosen"),
    [
        ([(0, 4), (1, 2)], {}, {0: 4, 1: 2}),
        ([(0, 4), (1, 3), (2, 1)], {}, {0: 4, 2: 1}),
        ([(0, 4), (1, 3), (2, 1)], {"skip": False}, {0: 4}),
        ([(0, 4), (1, 3), (2, 1)], {"shrink": True}, {0: 4, 1: 2}),
        ([(0, 4), (3, 2), (2, 3)], {"shrink": True}, {0: 4, 3: 1, 2: 1}),
        ([(0, 3), (2, 3), (1, 2)], {"shrink": True}, {0: 3, 2: 3}),  # one worker of the last would be too few
        ([(0, 0), (2, 2)], {"skip": False}, {2: 2}),
    ],
)
def test_widths_that_fit_into_the_pool(asked, options, chosen):
    jobs, widths = zip(*asked, strict=True)
    here = state()
    assert here.admit(jobs, widths, **options) == chosen
    assert here.capacity.tolist() == [8.0]


def test_every_resource_is_looked_at_and_one_that_a_job_does_not_need_is_not():
    here = state(capacity=(8.0, 3.0), demand=((1.0, 1.0), (2.0, 0.0), (1.0, 1.0), (3.0, 2.0)))
    assert here.admit([0, 1, 2], [4, 4, 3]) == {1: 4}
    assert here.admit([0, 1, 2], [3, 2, 1], shrink=True) == {0: 3, 1: 2}
    assert state(capacity=(3 - 1e-10,)).admit([2], [3]) == {2: 3}
