"""Compression plans as hooks of PyTorch: what the file says, and what two and four processes do with it."""

import ast
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from refusals import one_line

import ddlopt
from ddlopt import instances
from ddlopt.instances.workloads.compression.numpy_compressors import BUCKET, Setting, averaged
from ddlopt.instances.writers import export_plan, import_plan
from ddlopt.models.compression import GradedGradient, LevelInstance, LevelPlan, PointCurve
from ddlopt.models.compression.timeline.instance import CompressionInstance, CompressionPlan, Gradient, Option
from ddlopt.models.errors import OptionError

PYTHON = os.environ.get("DDLOPT_TORCH_PYTHON") or (sys.executable if find_spec("torch") else None)
needs_torch = pytest.mark.skipif(PYTHON is None, reason="needs PyTorch, here or in the Python of DDLOPT_TORCH_PYTHON")
WORKER = Path(__file__).parents[2] / "helpers" / "torch_worker.py"
HOSTILE = ['"""', "'); import os; os.abort() #", "two\nlines", "\\", "{x}", "é\u2028\U0001f600", "#= {}", "\0"]
LIBRARY = ["compression/espresso-resnet101-dgc-pcie", "compression/levels-bert-powersgd-25g"]
LIBRARY += ["compression/sfb-bert-base-b3-w2-tag", "compression/bert-base-n4x8-pcie-25g-budget"]


class Send(NamedTuple):
    name: str
    shape: tuple | None
    compressor: str
    amount: int = 0
    scope: str = "all"
    device: str = "gpu"


def messages_of(text):
    """What the file says is sent, read without running it."""
    (node,) = [
        each for each in ast.parse(text).body if isinstance(each, ast.AnnAssign) and each.target.id == "MESSAGES"
    ]
    return [[Send(*map(ast.literal_eval, call.args)) for call in each.elts] for each in node.value.elts]


def modules(node):
    """Packages that a statement imports from."""
    if isinstance(node, ast.Import):
        return [each.name.partition(".")[0] for each in node.names]
    return [node.module.partition(".")[0]] if isinstance(node, ast.ImportFrom) else []


def option(compressor, scope="all", device="gpu", **more):
    return Option(
        label=f"{compressor} {scope} {more}", compressor=compressor, scope=scope, device=device, wire_s=1, **more
    )


def instance_of(gradients, buckets=()):
    """An instance with one option a gradient, of (name, shape, option), and the plan that takes them."""
    menus = tuple((each,) for *_, each in gradients)
    listed = tuple(Gradient(name=n, shape=s, ready_s=i, menu=i) for i, (n, s, _) in enumerate(gradients))
    instance = CompressionInstance(name="mine", gradients=listed, menus=menus, fusion=bool(buckets))
    choices = (0,) * len(gradients)
    return instance, CompressionPlan(instance="mine", choices=choices, buckets=buckets)


@pytest.mark.parametrize("full", LIBRARY)
def test_plans_of_the_library_come_back(full, tmp_path):
    instance, plan = ddlopt.load(full), instances.best(full)
    file = tmp_path / "hook.py"
    file.write_text(export_plan(instance, plan, "torch-ddp"))
    assert "ddlopt" not in {name for node in ast.walk(ast.parse(file.read_text())) for name in modules(node)}
    assert import_plan(instance, file) == plan


def test_a_plan_is_written_gradient_by_gradient():
    full = LIBRARY[0]
    instance, plan = ddlopt.load(full), instances.best(full)
    said = messages_of(export_plan(instance, plan, "torch-ddp"))
    assert [len(each) for each in said] == list(plan.buckets or (1,) * len(instance.gradients))
    sends = [send for each in said for send in each]
    for place, (send, gradient) in enumerate(zip(sends, instance.gradients, strict=True)):
        chosen = instance.option(place, plan.choices[place])
        assert (send.name, send.shape, send.compressor) == (gradient.name, gradient.shape, chosen.compressor)
        assert (send.scope, send.device) == (chosen.scope, chosen.device)
        assert send.amount == (max(1, round(0.01 * gradient.elements)) if chosen.compressor == "dgc" else 0)


def test_amounts_are_entries_ranks_and_levels():
    options = [
        option("top_k", ratio=0.1),
        option("powersgd", rank=3),
        option("qsgd", levels=7),
        option("random_k", ratio=1e-9),
    ]
    said = messages_of(
        export_plan(*instance_of([(str(i), (8, 10), each) for i, each in enumerate(options)]), "torch-ddp")
    )
    assert [each[0].amount for each in said] == [8, 3, 7, 1]


def graded(compressor, shape, level):
    curve = PointCurve(levels=(level,), errors=(0.0,))
    gradient = GradedGradient(name="g", shape=shape, compressor=compressor, curve=curve, wire_s_per_level=1.0)
    instance = LevelInstance(name="mine", gradients=(gradient,), error_budget=1.0)
    return instance, LevelPlan(instance="mine", levels=(level,))


@pytest.mark.parametrize(
    ("compressor", "shape", "level", "said"),
    [
        ("powersgd", (8, 10), 3, ("powersgd", 3)),
        ("powersgd", (8,), 1, ("none", 0)),
        ("top_k", (8, 10), 5, ("top_k", 5)),
        ("top_k", (8, 10), 80, ("none", 0)),
        ("random_k", (8, 10), 5, ("random_k", 5)),
        ("qsgd", (8, 10), 4, ("qsgd", 7)),
        ("qsgd", (8, 10), 32, ("none", 0)),
    ],
)
def test_levels_become_amounts(compressor, shape, level, said):
    ((send,),) = messages_of(export_plan(*graded(compressor, shape, level), "torch-ddp"))
    assert (send.compressor, send.amount) == said


@pytest.mark.parametrize(("compressor", "level"), [("powersgd", 0), ("top_k", 0), ("qsgd", 1)])
def test_a_gradient_that_is_not_sent_is_refused(compressor, level):
    with one_line(OptionError, f"gradient 'g' has level {level} of {compressor}, with which nothing of it is sent"):
        export_plan(*graded(compressor, (8, 10), level), "torch-ddp")


def test_names_must_tell_gradients_apart():
    with one_line(OptionError, "two gradients of 'mine' are named 'a'"):
        export_plan(*instance_of([("a", (2,), option("none")), ("a", (3,), option("fp16"))]), "torch-ddp")


@pytest.mark.parametrize("hostile", HOSTILE)
def test_names_stay_strings_of_python(hostile, tmp_path):
    instance, plan = instance_of([(hostile, (2,), option("none"))])
    text = export_plan(instance, plan, "torch-ddp")
    assert messages_of(text) == [[Send(hostile, (2,), "none", 0, "all", "gpu")]]
    file = tmp_path / "hook.py"
    file.write_text(text)
    assert import_plan(instance, file) == plan


@pytest.fixture
def trained(tmp_path):
    """Gradients that all workers have in the end, step by step, and the collective operations of each step."""

    def run(text, given, names=None, node_size=None, steps=1, **options):
        (tmp_path / "hook.py").write_text(text, encoding="utf-8")
        spec = {"folder": str(tmp_path), "hook": str(tmp_path / "hook.py"), "world": len(given), "steps": steps}
        spec |= {"names": names or {}, "node_size": node_size, "options": options}
        (tmp_path / "spec.json").write_text(json.dumps(spec))
        for rank, arrays in enumerate(given):
            np.savez(tmp_path / f"gradients-{rank}.npz", **arrays)
        command = [PYTHON, str(WORKER), str(tmp_path / "spec.json")]
        here = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        # From elsewhere: helpers beside the worker are not for PyTorch's Python.
        workers = [
            subprocess.Popen([*command, str(rank)], env=here, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
            for rank in range(len(given))
        ]
        said = [worker.communicate(timeout=300)[1] for worker in workers]
        assert [worker.returncode for worker in workers] == [0] * len(given), said
        refused = sorted(tmp_path.glob("refused-*.txt"))
        if refused:
            return [each.read_text() for each in refused]
        found = [dict(np.load(tmp_path / f"found-{rank}.npz")) for rank in range(len(given))]
        for other in found[1:]:
            for name, array in found[0].items():
                assert np.array_equal(array, other[name]), f"workers differ in {name}"
        return found[0], json.loads((tmp_path / "calls-0.json").read_text())

    return run


def drawn(world, seed, **shapes):
    """Whole numbers for every worker, whose sums and halves are exact in any order."""
    rng = np.random.default_rng(seed)
    return [{name: rng.integers(-50, 50, shape).astype(float) for name, shape in shapes.items()} for _ in range(world)]


def mean(given, name):
    return np.mean([each[name] for each in given], axis=0)


@needs_torch
@pytest.mark.slow
@pytest.mark.parametrize("world", [2, 4])
def test_what_is_not_compressed_is_exact_and_fused_as_planned(trained, world):
    shapes = {"a": (3, 4), "b": (7,), "c": (5, 2, 2), "d": (1,), "e": (6, 6)}
    plan = instance_of([(f"plan {name}", shape, option("none")) for name, shape in shapes.items()], (2, 1, 2))
    given = drawn(world, 1, **shapes)
    found, calls = trained(export_plan(*plan, "torch-ddp"), given, {f"plan {name}": name for name in shapes}, steps=3)
    for step in range(3):
        assert calls[step] == {"all_reduce": 3}, "one message a bucket"
        for name in shapes:
            assert np.array_equal(found[f"{name}/{step}"], mean(given, name)), (name, step)


SHAPE = (24, 40)
COUNT = 960
COMPRESSED = {
    "fp": option("fp16"),
    "top": option("top_k", ratio=0.05),
    "dgc": option("dgc", ratio=0.05),
    "random": option("random_k", ratio=0.25),
    "qsgd": option("qsgd", levels=7),
    "sign": option("sign"),
    "onebit": option("onebit", device="cpu"),
    "low": option("powersgd", rank=3),
    "full": option("powersgd", rank=24),
    "none": option("none"),
}


@needs_torch
@pytest.mark.slow
@pytest.mark.parametrize("world", [2, 4])
def test_every_compressor_has_the_error_that_it_should_have(trained, world):
    """The first step against the same compressors in NumPy; what error feedback does over more steps."""
    steps = 40
    rng = np.random.default_rng(world)
    given = [
        {name: rng.standard_normal(SHAPE).astype(np.float32).astype(float) for name in COMPRESSED} for _ in range(world)
    ]
    gradients = [(name, SHAPE, each) for name, each in COMPRESSED.items()]
    factors = [
        {"inputs": rng.standard_normal((5 + rank, 40)), "errors": rng.standard_normal((5 + rank, 24))}
        for rank in range(world)
    ]
    gradients.append(("linear.weight", SHAPE, option("sfb")))
    given = [mine | theirs for mine, theirs in zip(given, factors, strict=True)]
    found, _ = trained(export_plan(*instance_of(gradients), "torch-ddp"), given, steps=steps)

    def first(name):
        return found[f"{name}/0"].astype(float)

    def stacked(name):
        return np.stack([each[name] for each in given])

    def expected(name, setting):
        return averaged(setting, stacked(name), np.random.default_rng(0))

    np.testing.assert_allclose(first("none"), mean(given, "none"), atol=1e-6)
    np.testing.assert_allclose(first("fp"), mean(given, "fp"), rtol=2e-3, atol=2e-3)
    assert not np.array_equal(first("fp"), mean(given, "fp").astype(np.float32))
    for name in ("top", "dgc"):
        np.testing.assert_allclose(first(name), expected(name, Setting("top_k", ratio=0.05)), atol=1e-6)
    for name in ("sign", "onebit"):
        np.testing.assert_allclose(first(name), expected(name, Setting(name)), atol=1e-5)
    kept = first("random") != 0
    assert kept.sum() == COUNT // 4
    np.testing.assert_allclose(first("random")[kept], mean(given, "random")[kept], atol=1e-6)
    np.testing.assert_allclose(first("full"), mean(given, "full"), atol=1e-5)
    assert np.linalg.matrix_rank(first("low"), tol=1e-4) == 3
    best = np.linalg.svd(mean(given, "low"), compute_uv=False)
    lost = np.linalg.norm(first("low") - mean(given, "low"))
    assert np.linalg.norm(best[3:]) - 1e-4 <= lost < np.linalg.norm(best)
    flat = np.pad(stacked("qsgd").reshape(world, -1), ((0, 0), (0, -COUNT % BUCKET))).reshape(world, -1, BUCKET)
    step = np.repeat(np.linalg.norm(flat, axis=2) / 7, BUCKET, axis=1)[:, :COUNT].mean(axis=0).reshape(SHAPE)
    assert (np.abs(first("qsgd") - mean(given, "qsgd")) <= step + 1e-5).all()
    exact = sum(each["errors"].T @ each["inputs"] for each in given) / world
    np.testing.assert_allclose(first("linear.weight"), exact, atol=1e-4)
    # The same gradient again and again: what is left out once comes later, so sums over steps stay near the truth.
    for name in ("top", "random", "low", "sign", "onebit", "qsgd"):
        total = sum(found[f"{name}/{step}"].astype(float) for step in range(steps)) / steps
        off = np.linalg.norm(total - mean(given, name)) / np.linalg.norm(mean(given, name))
        once = np.linalg.norm(first(name) - mean(given, name)) / np.linalg.norm(mean(given, name))
        assert off < 0.6 * once, (name, off, once)


@needs_torch
@pytest.mark.slow
def test_nodes_compress_between_themselves_or_within(trained):
    whole = {"between": option("top_k", "inter", ratio=1.0), "within": option("top_k", "intra", ratio=1.0)}
    part = {"few": option("top_k", "inter", ratio=0.1), "fine": option("fp16", "intra")}
    given = drawn(4, 3, **dict.fromkeys([*whole, *part], (6, 10)))
    plan = instance_of([(name, (6, 10), each) for name, each in (whole | part).items()])
    found, calls = trained(export_plan(*plan, "torch-ddp"), given, node_size=2, steps=2)
    for name in [*whole, "fine"]:
        assert np.array_equal(found[f"{name}/1"], mean(given, name)), name
    nodes = [(given[0]["few"] + given[1]["few"]) / 4, (given[2]["few"] + given[3]["few"]) / 4]
    expected = 2 * averaged(Setting("top_k", ratio=0.1), np.stack(nodes), np.random.default_rng(0))
    assert len(np.flatnonzero(found["few/0"])) <= 12
    assert np.abs(found["few/0"]).sum() == pytest.approx(np.abs(expected).sum())
    assert calls[1]["broadcast"] == 4


@needs_torch
@pytest.mark.slow
def test_fused_gradients_of_one_compressor_travel_together(trained):
    shapes = {"a": (10, 10), "b": (20, 5), "c": (30,)}
    same = option("top_k", ratio=0.5)
    plan = instance_of([(name, shape, same) for name, shape in shapes.items()], (3,))
    given = drawn(2, 5, **shapes)
    found, calls = trained(export_plan(*plan, "torch-ddp"), given, steps=2)
    assert calls[1] == {"all_gather": 1}
    for name in shapes:
        own = averaged(Setting("top_k", ratio=0.5), np.stack([each[name] for each in given]), np.random.default_rng(0))
        assert np.abs(found[f"{name}/0"]).sum() == pytest.approx(np.abs(own).sum(), rel=0.05)


REFUSED = {
    "no such parameter": ({"x": (2,)}, {"a": (2,)}, {}, "there is no trained parameter 'x'"),
    "another shape": ({"a": (2,)}, {"a": (3,)}, {}, "'a' is (3,), and was (2,)"),
    "a parameter too many": ({"a": (2,)}, {"a": (2,), "b": (2,)}, {}, "it does not say how 'b' is sent"),
    "twice": ({"a": (2,), "b": (2,)}, {"a": (2,), "b": (2,)}, {"b": "a"}, "'a' is in the plan twice"),
}


@needs_torch
@pytest.mark.slow
@pytest.mark.parametrize("case", REFUSED)
def test_a_plan_for_another_model_is_refused(trained, case):
    planned, has, names, says = REFUSED[case]
    plan = instance_of([(name, shape, option("none")) for name, shape in planned.items()])
    (line,) = trained(export_plan(*plan, "torch-ddp"), drawn(1, 0, **has), names)
    assert says in line
    assert "\n" not in line


@needs_torch
@pytest.mark.slow
def test_nodes_that_are_unlike_are_refused(trained):
    lines = trained(
        export_plan(*instance_of([("a", (2,), option("none"))]), "torch-ddp"), drawn(2, 0, a=(2,)), node_size=3
    )
    assert lines == ["node_size is 3, but there are 2 workers; all nodes have the same size"] * 2
