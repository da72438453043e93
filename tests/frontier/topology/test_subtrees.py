"""Subtrees in processes of their own: the same answer and a certificate that holds, also when workers are killed."""

import os
import signal
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from topology_cases import job

from ddlopt.certificates.topology import check_certificate
from ddlopt.frontier.topology.branch_and_bound import search as search_module
from ddlopt.frontier.topology.branch_and_bound.branch_and_bound import BranchAndBound
from ddlopt.frontier.topology.branch_and_bound.crew import Crew
from ddlopt.frontier.topology.branch_and_bound.search import Search
from ddlopt.instances import load
from ddlopt.models.errors import OptionError
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import Clock


def random_job(n, seed):
    traffic = np.rint(np.random.default_rng(seed).gamma(2.0, 5.0, (n, n)))
    np.fill_diagonal(traffic, 0)
    return job(traffic)


@pytest.fixture
def small_tasks(monkeypatch):
    """Tasks of few dives, so that many are needed."""
    monkeypatch.setattr(search_module, "_DIVES", 3)
    monkeypatch.setattr(search_module, "_BUDGETS", 0.01)


class Here:
    """Workers that do a task when it is given; the first few are lost before they begin, or with all they found."""

    def __init__(self, losses=0):
        self.losses, self.tasks = losses, 0

    def submit(self, task, *given):
        self.tasks += 1
        future = Future()
        if self.tasks <= self.losses:
            if self.tasks % 2:
                task(*given)
            future.set_exception(BrokenExecutor("a worker is gone"))
        else:
            future.set_result(task(*given))
        return future

    def shutdown(self, **_):
        pass


def searched(instance, crew):
    search = Search(instance, Clock(Limits(), None), 12, True)
    search.run(None, 1, crew)
    return search


@pytest.mark.parametrize("instance", [load("all-to-all-n6-d2"), random_job(5, 3)], ids=["alike", "unlike"])
def test_parts_of_workers_make_one_certificate(small_tasks, instance):
    alone = searched(instance, None)
    for losses in (0, 4):
        workers = Here(losses)
        together = searched(instance, Crew(lambda workers=workers: workers, 2))
        assert workers.tasks > 5 + losses
        assert together.complete
        assert together.best_bytes == pytest.approx(alone.best_bytes, rel=1e-4)
        checked = check_certificate(instance, together.certificate())
        assert float(checked.bound_bytes) >= alone.best_bytes * (1 - 2e-4)


def test_a_task_that_loses_every_worker_is_given_up():
    with pytest.raises(BrokenExecutor):
        searched(load("all-to-all-n6-d2"), Crew(lambda: Here(1000), 1))


def test_faults_of_a_task_are_no_losses(monkeypatch):
    class Faulty(Here):
        def submit(self, task, *given):
            future = Future()
            future.set_exception(ZeroDivisionError())
            return future

    with pytest.raises(ZeroDivisionError):
        searched(load("all-to-all-n6-d2"), Crew(Faulty, 1))


class Pools:
    """Pools of processes; one process of the first pool is killed with a task under way."""

    def __init__(self):
        self.made = 0

    def __call__(self):
        self.made += 1
        pool = ProcessPoolExecutor(2, get_context("spawn"))
        if self.made == 1:
            pid, submit = pool.submit(os.getpid).result(), pool.submit

            def deadly(*given):
                future = submit(*given)
                os.kill(pid, signal.SIGKILL)
                return future

            pool.submit = deadly
        return pool


def test_a_killed_process_loses_nothing():
    instance, pools = load("all-to-all-n6-d2"), Pools()
    with Crew(pools, 2) as crew:
        search = searched(instance, crew)
    assert pools.made > 1
    assert crew.lost > 0
    assert search.complete
    assert search.best_bytes == pytest.approx(4.2)
    assert float(check_certificate(instance, search.certificate()).bound_bytes) == pytest.approx(4.2, rel=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_workers_prove_the_same(workers):
    instance = random_job(6, 4)
    alone = BranchAndBound(opening=0.05).solve(instance, Limits())
    result, certificate = BranchAndBound(opening=0.05, workers=workers).certified(instance, Limits())
    assert result.status is alone.status is Status.OPTIMAL
    assert result.objective == pytest.approx(alone.objective, rel=1e-4)
    assert check_certificate(instance, certificate).bound_bytes == certificate.bound


@pytest.mark.slow
def test_workers_of_a_cluster_prove_the_same():
    distributed = pytest.importorskip("distributed", reason="needs Dask: pip install 'ddlopt[cluster]'")
    instance = load("all-to-all-n6-d2")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        made = method(f"branch-and-bound:cluster={cluster.scheduler_address}", "topology")
        result = made.solve(instance, Limits())
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(4.2)


def test_workers_are_asked_for_in_one_way():
    for wrong in ({"workers": -1}, {"workers": 2, "cluster": "tcp://127.0.0.1:9"}):
        with pytest.raises(OptionError):
            BranchAndBound(**wrong)
