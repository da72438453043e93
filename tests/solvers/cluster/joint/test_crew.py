"""Who solves inner problems: lost workers, late ones, crashes, and Ctrl-C."""

import multiprocessing
import os
import signal
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass

import pytest
from volume import for_each

import ddlopt
from ddlopt.instances.generators import generate
from ddlopt.models.errors import SolverError
from ddlopt.solvers import catalogue
from ddlopt.solvers.cluster.joint import crew as module
from ddlopt.solvers.cluster.joint import refinement
from ddlopt.solvers.cluster.joint.crew import NOTHING, Crew, Task, solved
from ddlopt.solvers.cluster.joint.plans import Plans
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock

INSTANCE = generate("cluster", "joint", 0, jobs=2, servers=4, workloads=("tiny-step",), widths=(2, 4))
TASK = Task(INSTANCE.problems[0].model_dump(mode="json"), "", 60.0, 1e-6, 0)


@dataclass
class Pool:
    """An executor that loses its workers, or never ends."""

    losses: int = 0
    stands_still: bool = False
    asked: int = 0

    def submit(self, work, task):
        self.asked += 1
        future = Future()
        if self.stands_still:
            return future
        if self.losses:
            self.losses -= 1
            future.set_exception(BrokenExecutor("a worker is gone"))
        else:
            future.set_result(work(task))
        return future


@for_each(("losses", "rounds"), [(0, 0), (1, 1), (2, 1), (3, 2), (100, 3)])
def test_what_a_lost_worker_had_is_given_to_another_or_done_here(losses, rounds, monkeypatch):
    """Two tasks at a time, and a pool that has lost one worker is lost."""
    tasks = [TASK, TASK._replace(seed=1)]
    monkeypatch.setattr(module, "solved", lambda task: NOTHING._replace(lower=1.0 + task.seed))
    crew = Crew(2, Pool(losses))
    assert [each.lower for each in crew.outcomes(tasks, lambda: False)] == [1.0, 2.0]
    assert crew.lost == rounds


@for_each(
    ("name", "module_name", "is_loss"),
    [
        ("KilledWorker", "distributed.scheduler", True),
        ("ClosedClientError", "distributed.client", True),
        ("KilledWorker", "ddlopt.solvers", False),
        ("ValueError", "builtins", False),
    ],
)
def test_what_dask_says_of_workers_that_are_gone_is_a_loss_and_a_fault_is_none(name, module_name, is_loss, monkeypatch):
    monkeypatch.setattr(module, "solved", lambda task: NOTHING._replace(lower=1.0))
    fault = type(name, (Exception,), {"__module__": module_name})("told")
    pool = Pool()
    pool.submit = lambda work, task: (_ for _ in ()).throw(fault)
    if is_loss:
        assert [each.lower for each in Crew(1, pool).outcomes([TASK], lambda: False)] == [1.0]
    else:
        with pytest.raises(type(fault)):
            Crew(1, pool).outcomes([TASK], lambda: False)


def dask():
    return pytest.importorskip("distributed", reason="needs Dask: pip install 'ddlopt[cluster]'")


@pytest.mark.slow
@pytest.mark.parametrize("gone", ["a worker", "the cluster"])
def test_a_dask_cluster_that_is_lost_in_part_or_whole_loses_nothing(gone):
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with dask().LocalCluster(**options) as cluster, dask().Client(cluster, set_as_default=False) as client:
        workers, looks = list(client.run(os.getpid).values()), []

        def late():
            looks.append(gone)
            if len(looks) == 2:  # the first look is before anything is asked for
                os.kill(workers[0], signal.SIGKILL) if gone == "a worker" else cluster.close()
            return False

        crew = Crew(2, client.get_executor(pure=False))
        assert crew.outcomes([TASK] * 4, late) == [solved(TASK)] * 4
        assert len(looks) > 1
        assert (crew.lost > 0) == (gone == "the cluster")  # Dask itself gives what a worker had to another


@pytest.mark.slow
def test_a_dask_cluster_solves_inner_problems():
    instance = generate("cluster", "joint", 1, jobs=3, servers=4, widths=(2, 3))
    alone = ddlopt.solve(instance, "refinement", time_limit=60, gap=1e-4)
    with dask().LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        found = ddlopt.solve(instance, f"refinement:cluster={cluster.scheduler_address}", time_limit=120, gap=1e-4)
    assert found.checked
    assert found.objective == pytest.approx(alone.objective, rel=2e-4)
    assert found.details["inner_solves"] > 0


def test_nobody_waits_for_a_worker_when_it_is_late():
    pool = Pool(stands_still=True)
    looks = iter([False, False, True])
    crew = Crew(1, pool)
    assert crew.outcomes([TASK], lambda: next(looks, True)) == [NOTHING]
    assert (pool.asked, crew.lost) == (1, 0)


def test_nothing_is_solved_here_when_it_is_late():
    assert Crew().outcomes([TASK], lambda: True) == [NOTHING]


def test_a_method_that_crashes_has_found_nothing(monkeypatch):
    def crash(*_):
        raise SolverError("it ended")

    monkeypatch.setattr(module, "within", crash)
    assert solved(TASK) == NOTHING


@pytest.mark.slow
def test_a_process_that_is_killed_loses_nothing():
    crew, killed = Crew(2), []

    def late():
        for child in multiprocessing.active_children() if not killed else []:
            killed.append(child.pid)
            os.kill(child.pid, signal.SIGKILL)
        return False

    try:
        assert crew.outcomes([TASK, TASK], late) == [solved(TASK)] * 2
        assert killed
        assert crew.lost == 1
    finally:
        crew.close()


@pytest.mark.slow
def test_processes_end_when_nobody_wants_them_any_more():
    crew = Crew(2)
    crew.outcomes([TASK, TASK], lambda: False)
    children = multiprocessing.active_children()
    assert children
    crew.close()
    for child in children:
        child.join(60)
        assert not child.is_alive()


@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_ctrl_c_answers_with_what_there_is(threads):
    instance = generate("cluster", "joint", 1, jobs=4, servers=8)
    pressed = []

    def press(point):
        if point.incumbent is not None and not pressed:
            pressed.append(point)
            os.kill(os.getpid(), signal.SIGINT)

    result = catalogue.method("refinement", "cluster").solve(
        instance, Limits(600, 0.0, threads=threads), progress=press
    )
    assert pressed
    assert result.interrupted
    assert result.checked
    assert result.objective <= pressed[0].incumbent
    assert result.bound > 0


def test_when_the_time_is_up_nothing_is_begun(monkeypatch):
    def never(*_):
        raise AssertionError("it was asked")

    plans = Plans(INSTANCE, Clock(Limits(1e-9), None), 1e-6)
    assert plans.sharpen(list(plans.pairs), lambda: False) == 0
    loop = refinement.Loop(plans, Limits(1e-9), 0)
    monkeypatch.setattr(refinement, "relaxed", never)
    monkeypatch.setattr(refinement, "Search", never)
    assert loop._below() == []
    assert loop.bound > 0


def test_time_is_left_for_a_last_schedule():
    plans = Plans(INSTANCE, Clock(Limits(100.0), None), 1e-6)
    plans.known((0, 2)).budget_s = 1000.0
    plans.spare_s = 40.0
    assert plans._task((0, 2)).seconds <= 60
    plans.spare_s = 100.0
    assert plans.sharpen(list(plans.pairs), lambda: False) == 0
