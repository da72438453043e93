"""What proofs of a problem's own and trees over its formulations have of the time."""

import itertools
from types import SimpleNamespace

import pytest

from ddlopt import instances
from ddlopt.frontier.scheduling import prove as of_schedules
from ddlopt.models import plugins
from ddlopt.models.errors import NotApplicableError
from ddlopt.solvers import proofs


def test_a_proof_that_goes_on_until_the_end_leaves_time_for_a_tree(monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr(proofs, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))

    def never_done(_instance, _solution, _target, expired):
        while not expired():
            pass

    monkeypatch.setattr(of_schedules, "prove", never_done)
    instance = instances.load("scheduling/tiny-general")
    certificate, closed = proofs.prove(instance, instances.best("scheduling/tiny-general"), 1e-4, 1000.0)
    assert closed
    assert certificate.method == "exact"


def test_without_the_frontier_the_combinatorial_bound_is_proven_and_trees_are_refused(monkeypatch):
    name = "aggregation/tree-soar-n7-k2"
    instance, best = instances.load(name), instances.best(name)
    found, closed = proofs.prove(instance, best, 1e-4, 60.0)
    monkeypatch.setenv(plugins.HIDDEN, "1")
    without, met = proofs.prove(instance, best, 1e-4, 60.0)
    assert isinstance(without, proofs.CombinatorialCertificate)
    assert proofs.check(instance, without).bound <= proofs.check(instance, found).bound
    assert closed >= met
    with pytest.raises(NotApplicableError, match="frontier"):
        proofs.prove(instance, best, 1e-4, 60.0, method="tree")
