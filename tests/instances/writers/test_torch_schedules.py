"""Schedules for PyTorch's pipelines: written, read back, and broken ones refused."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from refusals import one_line

import ddlopt
from ddlopt.instances.generators.deployment import generate
from ddlopt.instances.readers.schedules import read_schedule
from ddlopt.models.errors import OptionError, SolutionError

PYTHON = os.environ.get("DDLOPT_TORCH_PYTHON") or (sys.executable if find_spec("torch") else None)
needs_torch = pytest.mark.skipif(PYTHON is None, reason="needs PyTorch, here or in the Python of DDLOPT_TORCH_PYTHON")
WORKER = Path(__file__).parents[2] / "helpers" / "torch_pipeline_worker.py"


def pipeline(**options):
    return generate("microbatches", 0, **({"stages": 2, "micro_batches": 3} | options))


def written(instance, method="1f1b"):
    return ddlopt.export_plan(instance, ddlopt.solve(instance, method).solution, "torch-schedule")


def test_a_file_by_hand():
    assert written(pipeline(fused=True, micro_batches=2)) == "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"


@pytest.mark.parametrize("options", [{}, {"fused": True}, {"chunks": 2, "shape": "v"}, {"stages": 1}])
def test_read_back(options, tmp_path):
    instance = pipeline(**options)
    solution = ddlopt.solve(instance, "list-scheduling").solution
    path = tmp_path / "order.csv"
    ddlopt.export_plan(instance, solution, "torch-schedule", out=path)
    assert ddlopt.import_plan(instance, path, "torch-schedule").orders == solution.orders


def test_stages_are_in_the_order_of_the_chain(tmp_path):
    instance = pipeline(fused=True, micro_batches=1)
    turned = instance.changed(
        chunks=[chunk.model_copy(update={"name": chunk.name}) for chunk in instance.chunks[::-1]],
        edges=[{"maker": 1, "user": 0}],
    )
    text = written(turned)
    assert text.splitlines() == ["0F0,0B0", "1F0,1B0"]
    path = tmp_path / "order.csv"
    path.write_text(text)
    assert ddlopt.import_plan(turned, path, "torch-schedule").orders == (("1F0", "1B0"), ("0F0", "0B0"))


GOOD = "0F0,0F1,0I0,0W0,0F2,0I1,0W1,0I2,0W2\n1F0,1I0,1W0,1F1,1I1,1W1,1F2,1I2,1W2\n"
BROKEN = [
    (GOOD.replace("0F2,", ""), "pass 0F2 is missing; every pass runs once"),
    (GOOD.replace("1I2,", "1I2,1I2,"), "row 1, column 8: '1I2' is listed twice"),
    (GOOD.replace("1I2,", "1I9,"), "is of micro-batch 9; there are 3 (0..2)"),
    (GOOD.replace("1I2,", "7I2,"), "is of stage 7; there are 2 (0..1)"),
    (GOOD.replace("1I2,", "1B2,"), "is B; stage 1 has F, I, W"),
    (GOOD.replace("1I2,", "one,"), "'one' is no pass; expected stage"),
    (GOOD.replace("1I2,", "0I2,"), "is of stage 0, which is on device 0, not 1"),
    (GOOD.splitlines()[0] + "\n", "has 1 rows, and 'microbatches-p2-n3-makespan' has 2 devices"),
    (GOOD.replace("0I0,0W0", "0W0,0I0"), "no pass waits for itself"),
    ("", "has 0 rows"),
]


@pytest.mark.parametrize(("text", "words"), BROKEN)
def test_broken_files_are_refused(text, words, tmp_path):
    path = tmp_path / "order.csv"
    path.write_text(text)
    with pytest.raises(SolutionError) as error:
        read_schedule(path, "torch-schedule", pipeline(memory=3.0))
    one_line(error, words)


def test_memory_is_looked_at(tmp_path):
    path = tmp_path / "order.csv"
    path.write_text(GOOD)
    assert read_schedule(path, "torch-schedule", pipeline(memory=3.0)).plan.orders[1][0] == "1F0"
    with pytest.raises(SolutionError) as error:
        read_schedule(path, "torch-schedule", pipeline(memory=1.0))
    one_line(error, "memory suffices")


def test_two_chains_are_no_pipeline(tmp_path):
    instance = pipeline(shape="dual", micro_batches=4)
    solution = ddlopt.solve(instance, "list-scheduling").solution
    with pytest.raises(OptionError) as error:
        ddlopt.export_plan(instance, solution, "torch-schedule")
    one_line(error, "2 chains of chunks; PyTorch's schedules have one")


RUNS = [
    ("1f1b", {"fused": True}),
    ("zb-h1", {}),
    ("exact", {"memory": 5.0, "objective": "span", "last": 2.0}),
    ("interleaved-1f1b", {"chunks": 2, "micro_batches": 4, "fused": True, "memory": 11.0}),
    ("zb-v", {"chunks": 2, "shape": "v", "micro_batches": 8}),
]


@needs_torch
@pytest.mark.slow
@pytest.mark.parametrize(("method", "options"), RUNS)
def test_pytorch_runs_the_order_of_the_plan(method, options, tmp_path):
    """On four processes of gloo: every rank's passes are the plan's, and gradients are those of one process."""
    instance = generate("microbatches", 0, **({"stages": 4, "micro_batches": 6} | options))
    solution = ddlopt.solve(instance, method).solution
    ddlopt.export_plan(instance, solution, "torch-schedule", out=tmp_path / "order.csv")
    spec = {
        "folder": str(tmp_path),
        "schedule": str(tmp_path / "order.csv"),
        "chunks": [instance.chunks[chunk].device for chunk in instance.chains[0]],
        "micro_batches": instance.micro_batches,
        "ranks": instance.devices,
    }
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    ranks = [
        subprocess.Popen(
            [PYTHON, "-I", str(WORKER), str(tmp_path / "spec.json"), str(rank)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(instance.devices)
    ]
    try:
        told = [process.communicate(timeout=600)[0] for process in ranks]
    finally:
        for process in ranks:
            process.kill()
    assert [process.returncode for process in ranks] == [0] * len(ranks), "\n".join(told)
    for rank, order in enumerate(solution.orders):
        found = json.loads((tmp_path / f"rank-{rank}.json").read_text())
        assert tuple(found["passes"]) == order
        assert found["error"] <= 1e-6
