"""Whether every method keeps its limits on the largest bundled instance that it covers: time and memory.

    python benchmarks suite/limits scheduling/lp-guided scheduling/gadget --instance philly.json --time-limit 60

Each solve is a process of its own. Its kernels are compiled and its instance is read before; the time limit counts from
then on until the result has been checked. A solve may take its limit, a twentieth of it and 2 s, and 2 GiB. What
comes after the limit is told in processor seconds, so that a busy machine changes nothing: those that the process and
its children spend between the end of the limit and the result. Every row is kept as soon as it is there: the same
command goes on where it was interrupted; ``--again`` repeats the rows that were over, by the names given.

With ``--large`` instances are as large as people bring them, made here: by method and size
what reading and solving take, in wall-clock and in processor seconds, and the ratio of the solve to its limit. With
``DDLOPT_GUARD=off`` methods are on their own.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import psutil

import ddlopt
from benchmarks.harness import ROOT, Benchmark, Kept, Option
from ddlopt.instances import index
from ddlopt.models.catalogue import family as family_of

TIME_PART, TIME_S, MEMORY_BYTES = 0.05, 2.0, 2 * 2**30
"""What a solve may take beyond its limit: a part of it, and seconds; and the memory that it may have."""
_PATIENCE = 6.0, 120.0
"""Part of the limit, and seconds, after which a solve is ended."""
_POLL_S = 0.02
_SOLVE = "import sys; from benchmarks.suite.limits import solve; solve(*sys.argv[1:])"


def limits(asked):
    """A row for each method."""
    if asked.large:
        yield from sizes(asked)
        return
    kept = Kept(asked.keep)
    count = overs = 0
    for family, method, instance in pairs(asked.names, asked.instance)[: asked.most]:
        key = f"{family}/{method} {instance} {asked.time_limit:g}"
        again = asked.again and over(kept.rows.get(key))
        row = kept.row(key, partial(measured, family, method, instance, asked.time_limit), again)
        count, overs = count + 1, overs + over(row)
        if over(row) or not asked.over:
            yield cells(row)
    yield f"{overs} of {count} solves over."


def sizes(asked):
    """A row for each method on instances of sizes that people bring."""
    for method, size, make in LARGE:
        if asked.names and not {method.partition("/")[0], method} & set(asked.names):
            continue
        name = f"limits-{method.replace('/', '-')}-{size.replace(' ', '-')}"
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"{name}.json"
            file.write_text(make(asked.quick).to_json(indent=None), encoding="utf-8")
            row = measured(*method.split("/"), str(file), asked.time_limit)
        spent = row.get("wall_s", row.get("after_s", 0.0) + asked.time_limit)
        yield {
            "method": method,
            "size": size,
            "status": row["status"],
            "limit s": f"{asked.time_limit:g}",
            "reading s": f"{row.get('reading_s', 0.0):.1f}",
            "solve s": f"{spent:.1f}",
            "of the limit": f"{spent / asked.time_limit:.2f}",
            "after the limit, processor s": f"{row.get('after_s', 0.0):.1f}",
            "stopped": row.get("stopped", ""),
        }


def pairs(names: list[str], instance: str | None) -> list[tuple[str, str, str]]:
    """(family, method, instance) that are asked for: of each problem the largest instance that a method covers."""
    if instance is not None:
        return [(*name.split("/"), instance) for name in names]  # type: ignore[misc]
    found: dict[tuple[str, str, str], index.Listed] = {}
    for listed in index.read().instances.values():
        for method in listed.methods:
            if names and not {listed.family, f"{listed.family}/{method}"} & set(names):
                continue
            key = listed.problem, listed.family, method
            if key not in found or weight(listed) > weight(found[key]):
                found[key] = listed
    return [(family, method, listed.name) for (_, family, method), listed in found.items()]


def weight(listed: index.Listed) -> tuple[int, int]:
    """The larger the more there is to solve: its size, then its file."""
    return listed.size, (index.FILE.parent / f"{listed.name}.json").stat().st_size


def measured(family: str, method: str, instance: str, limit_s: float) -> dict[str, Any]:
    """One row, of a solve in a process of its own."""
    command = [sys.executable, "-c", _SOLVE, f"{family}/{method}", instance, str(limit_s)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment)
    assert child.stdout is not None
    row: dict[str, Any] = {"method": f"{family}/{method}", "instance": instance, "limit_s": limit_s}
    if child.stdout.readline().strip() != "ready":
        return {**row, "status": f"crashed, {child.wait()}"}
    process, began, at_limit = psutil.Process(child.pid), time.perf_counter(), None
    while child.poll() is None and time.perf_counter() - began < _PATIENCE[0] * limit_s + _PATIENCE[1]:
        time.sleep(_POLL_S)
        if at_limit is None and time.perf_counter() - began >= limit_s:
            at_limit = processor_s(process)
    if child.poll() is None:
        os.killpg(child.pid, 9)
        child.wait()
        return {**row, "status": "killed", "after_s": time.perf_counter() - began - limit_s}
    text = child.stdout.read().strip().splitlines()
    if not text:
        return {**row, "status": f"crashed, {child.returncode}"}
    found = json.loads(text[-1])
    after = 0.0 if at_limit is None else max(0.0, found.pop("processor_s") - at_limit)
    return {**row, **found, "after_s": after}


def processor_s(process: psutil.Process) -> float:
    """Processor seconds that a process and its children have spent."""
    try:
        times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
        mine = process.cpu_times()
        return sum(each.user + each.system for each in times) + mine.children_user + mine.children_system
    except psutil.Error:
        return 0.0


def solve(method: str, name: str, limit: str) -> None:
    """Solve here, and print what it took."""
    from ddlopt.analysis.compare import attempt
    from ddlopt.models.compilation import compile_kernels
    from ddlopt.solvers import catalogue
    from ddlopt.solvers.contracts import Limits, kernels_of
    from ddlopt.solvers.wrappers.guarded import Guarded, can_guard

    family, _, own = method.partition("/")
    began = time.perf_counter()
    instance, chosen = ddlopt.load(name), catalogue.method(own, family)
    reading_s = time.perf_counter() - began
    if can_guard():
        chosen = Guarded(chosen)
    compile_kernels(kernels_of(chosen, instance))
    print("ready", flush=True)
    began = time.perf_counter()
    result = attempt(instance, chosen, Limits(float(limit)))
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    row = {
        "status": str(result.status),
        "wall_s": time.perf_counter() - began,
        "runtime_s": result.runtime_s,
        "processor_s": sum(usage.ru_utime + usage.ru_stime for usage in usages),
        "memory_bytes": sum(usage.ru_maxrss for usage in usages) * 1024,
        "message": result.message[:200],
        "reading_s": reading_s,
        "stopped": "yes" if "stopped" in result.details else "",
    }
    print(json.dumps(row), flush=True)


def over(row: dict[str, Any] | None) -> bool:
    """Whether a solve took more than it may."""
    if row is None:
        return False
    late = row.get("after_s", 0.0) > TIME_PART * row["limit_s"] + TIME_S
    return late or row.get("memory_bytes", 0) > MEMORY_BYTES or row["status"].startswith(("crashed", "killed"))


def cells(row: dict[str, Any]) -> dict[str, str]:
    """A row of the table."""

    def figure(name: str, unit: float = 1.0) -> str:
        return f"{row[name] / unit:.1f}" if name in row else ""

    return {
        "method": row["method"],
        "largest instance": Path(row["instance"]).name,
        "status": row["status"],
        "wall clock s": figure("wall_s"),
        "after the limit, processor s": figure("after_s"),
        "memory GB": figure("memory_bytes", 1e9),
        "": "over" if over(row) else "",
    }


def plan_of_transformers(servers):
    """A deployment on identical servers: the operators of a transformer, drawn as those of the library."""

    def make(quick):
        count = 9 if quick else servers
        base = ddlopt.load("deployment/bert-large-testbed").model_dump(mode="json")
        kind = base["device_groups"][0] | {"count": 8}
        base |= {"name": f"bert-large-{count}-servers", "device_groups": [kind] * count}
        base["bandwidth_bytes_per_s"] = [[0.0 if i == j else 1e10 for j in range(count)] for i in range(count)]
        return family_of("deployment").instance.from_data(base)

    return make


def generated(name, kind, small, **options):
    """An instance of a generator, with smaller options for ``--quick``."""
    return lambda quick: ddlopt.generate(name, kind, **(options | small if quick else options))


MIXTRAL = {
    "model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
    "num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8,
    "max_position_embeddings": 32768, "vocab_size": 32000,
}  # fmt: skip


def read_from_configuration(source_format, small, **options):
    """What the reader of a format makes of a model's ``config.json``."""

    def make(quick):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "config.json"
            file.write_text(json.dumps(MIXTRAL), encoding="utf-8")
            return ddlopt.convert(file, source_format, **(options | small if quick else options))

    return make


LARGE = (
    ("deployment/exact", "16 servers", plan_of_transformers(16)),
    ("deployment/exact", "64 servers", plan_of_transformers(64)),
    ("deployment/mcmc", "64 servers", plan_of_transformers(64)),
    (
        "topology/link-exchange",
        "1000 servers",
        generated("topology", "random", {"servers": 40}, servers=1000, degree=4),
    ),
    (
        "topology/link-exchange",
        "300 servers, dense",
        generated("topology", "all-to-all", {"servers": 16}, servers=300, degree=4),
    ),
    (
        "topology/topology-finder",
        "300 servers, dense",
        generated("topology", "all-to-all", {"servers": 16}, servers=300, degree=4),
    ),
    ("gossip/fastest-weights", "1000 nodes", generated("gossip", "weights", {"nodes": 40}, nodes=1000)),
    ("gossip/fastest-weights", "2000 nodes", generated("gossip", "weights", {"nodes": 40}, nodes=2000)),
    ("gossip/best-constant", "2000 nodes", generated("gossip", "weights", {"nodes": 40}, nodes=2000)),
    ("scheduling/gadget", "20 000 jobs", generated("scheduling", "elastic", {"jobs": 200}, jobs=20_000)),
    ("scheduling/gadget", "100 000 jobs", generated("scheduling", "elastic", {"jobs": 200}, jobs=100_000)),
    ("scheduling/exact", "100 000 jobs", generated("scheduling", "elastic", {"jobs": 200}, jobs=100_000)),
    (
        "codesign/joint",
        "Mixtral, 64 servers",
        read_from_configuration(
            "transformer-codesign",
            {"servers": 8},
            servers=64,
            gpus_per_server=8,
            memory_gigabytes=80,
            batch=8,
            sequence=2048,
            precision="bf16",
            sharded="parameters",
            recompute=True,
            micro_batches=8,
        ),
    ),
    (
        "deployment/exact",
        "Mixtral, 1024 devices",
        read_from_configuration(
            "transformer-pipeline", {"servers": 4}, cluster="dgx-h100", servers=128, global_batch=1024, sequence=4096
        ),
    ),
    (
        "deployment/exact",
        "32 stages, 256 micro-batches",
        generated(
            "deployment", "microbatches", {"stages": 4, "micro_batches": 8}, stages=32, micro_batches=256, memory=40
        ),
    ),
    ("cluster/exact", "5000 jobs", generated("cluster", "jobs", {"jobs": 20}, jobs=5000, servers=64)),
    (
        "cluster/exact",
        "10 240 hosts",
        generated("cluster", "placement", {"pods": 0, "racks": 2}, pods=4, blocks=8, racks=16, hosts=20),
    ),
    ("cluster/exact", "40 jobs, 128 servers, joint", generated("cluster", "joint", {"jobs": 3}, jobs=40, servers=128)),
)
"""Method, size, and what makes the instance."""

BENCH = Benchmark(
    limits,
    names=Option([], "families, or FAMILY/METHOD; all by default", ["topology"], str, positional=True),
    time_limit=Option(5.0, quick=1.0),
    keep=Option(Path("limits.jsonl"), quick=Path("limits_quick.jsonl"), type=Path),
    large=Option(False, "instances of sizes that people bring, in place of the library's"),
    instance=Option(None, "this one, by name or file, in place of the largest"),
    again=Option(False, "repeat rows that were over"),
    over=Option(False, "only print rows that were over"),
    most=Option(10_000, "how many methods", quick=3),
)
