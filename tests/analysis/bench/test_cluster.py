"""A sweep on a Dask cluster: a scheduler and two workers on this machine, one of which is killed in the middle."""

import os
import signal
from importlib.util import find_spec

import pytest

import ddlopt
from ddlopt.analysis.bench import Store, Sweep, plan
from ddlopt.models.errors import OptionError
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.dask_workers import executor_of

pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="needs Dask: pip install 'ddlopt[cluster]'")

TINY = "topology/tiny-n4-d2"


@pytest.mark.slow
def test_nobody_answers():
    nobody = executor_of("tcp://127.0.0.1:9")
    with pytest.raises(OptionError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9: "):
        nobody.__enter__()


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_no_result(tmp_path, odd_methods):
    from distributed import LocalCluster

    tasks = plan([TINY], ["slow:seconds=0.5", "crash"], range(4), Limits(30.0))
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as local,
        executor_of(local.scheduler_address) as (executor, width),
        Store(tmp_path / "results.sqlite") as store,
    ):
        assert width == 2
        killed = False
        for finished in Sweep(tasks, store, width, executor).run():
            if not killed:
                os.kill(next(iter(local.workers.values())).pid, signal.SIGKILL)
                killed = True
            assert finished.run["wall_s"] > 0
        runs = list(store.runs())
    assert {run["key"] for run in runs} == {task.key for task in tasks}
    slow = [run for run in runs if run["method"].startswith("slow")]
    alone = {seed: ddlopt.solve(TINY, "topology-finder", seed=seed).objective for seed in range(4)}
    assert {run["seed"]: run["objective"] for run in slow} == alone
    assert {run["status"] for run in runs if run["method"] == "crash"} == {"crashed"}


def test_a_cluster_without_workers_says_so():
    from distributed import LocalCluster

    with LocalCluster(n_workers=0, dashboard_address=None, host="127.0.0.1") as local:
        empty = executor_of(local.scheduler_address)
        with pytest.raises(OptionError, match="has no workers; start some with: dask worker tcp://"):
            empty.__enter__()
