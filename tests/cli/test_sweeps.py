"""What a sweep says before it runs and while it does."""

from types import SimpleNamespace

from ddlopt.analysis.bench.sweep import Sweep
from ddlopt.analysis.bench.tasks import plan
from ddlopt.cli.bench import running_text
from ddlopt.solvers.contracts import Limits

TINY = "topology/tiny-n4-d2"


def test_a_plan_counts_what_is_missing(call, tmp_path):
    store = tmp_path / "s.sqlite"
    asked = ["bench", TINY, "--store", store, "--time-limit", "36", "--methods"]
    both = [*asked, "topology-finder,expander", "--seeds", "0,1", "--dry-run"]
    assert call(*both)[:2] == (0, "4 solves of 1 instances, at most 0.0 h of solving\n")
    assert not store.exists()
    assert call(*asked, "topology-finder", "--jobs", "1")[0] == 0
    told = call(*both)
    assert told[:2] == (
        0,
        f"4 solves of 1 instances, of which {store} has 1; 3 are missing, at most 0.0 h of solving\n",
    )
    assert call(*both, "--again", "feasible,optimal")[1].startswith("4 solves of 1 instances, at most")


def test_what_runs_is_named_with_the_time_that_is_left():
    tasks = plan([TINY], ["topology-finder", "expander"], [0, 1], Limits(90.0))
    sweep = Sweep(tasks, SimpleNamespace(keys=set), jobs=2)
    sweep.running = dict(enumerate(tasks[:2]))
    names = f"{TINY} topology-finder; {TINY} {tasks[1].method}"
    assert running_text(sweep) == f"at most 180 s left: {names}"
    sweep.done = sweep.finished_here = 1
    assert running_text(sweep).startswith("about ")
    assert running_text(sweep).endswith(f" left: {names}")
