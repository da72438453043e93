"""Changes of a list of jobs: whatever is drawn, it is a change, and it can be taken back."""

import numpy as np

from ddlopt.solvers.cluster.jobs.list_moves import change, undo


def test_a_change_is_taken_back():
    order, chosen, menus = np.arange(7), np.array([0, 1, 2, 0, 1, 0, 0]), np.array([3, 3, 3, 2, 2, 1, 1])
    changed = {"list": 0, "width": 0}
    for _ in range(300):
        before = order.copy(), chosen.copy()
        job, old, a, b = change.py_func(order, chosen, menus, 2)
        if job < 0 and a == b:
            assert (order == before[0]).all()
            assert (chosen == before[1]).all()
            continue
        changed["list" if job < 0 else "width"] += 1
        assert (order != before[0]).any() == (job < 0)
        assert (chosen != before[1]).sum() == (job >= 0)
        assert sorted(order) == list(range(7))
        assert (order[:2] == [0, 1]).all()
        assert (chosen >= 0).all()
        assert (chosen < menus).all()
        undo.py_func(order, chosen, job, old, a, b)
        assert (order == before[0]).all()
        assert (chosen == before[1]).all()
    assert all(changed.values())
