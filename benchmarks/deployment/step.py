"""Training steps: the cost model beside Calculon and measured runs, and what planners' rules lose.

``table5`` and ``grid`` read models, systems and runs of Calculon (calculon-ai/calculon), ``measured`` published rates
with all degrees; both are public data that are not part of the project. ``rules`` takes the bundled instances.
"""

import json
import subprocess
import sys
from pathlib import Path
from statistics import mean

import ddlopt
from benchmarks.harness import Benchmark, Option, Skipped, data
from ddlopt.instances.readers.models.calculon import read_calculon
from ddlopt.instances.readers.models.galvatron import read_galvatron
from ddlopt.instances.readers.models.transformer_pipeline import read_transformer_pipeline
from ddlopt.instances.writers import read_plan
from ddlopt.models.deployment import StepPlan
from ddlopt.models.deployment.step.evaluate import evaluate_step
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.step.enumeration import Search, Space
from ddlopt.solvers.heuristic import Clock

TABLE5 = {
    ("megatron-22B", "full"): (1.42, 1.3956, 48.154), ("megatron-22B", "seqsel"): (1.10, 1.1367, 52.08),
    ("gpt3-175B", "full"): (18.13, 18.0288, 48.103), ("gpt3-175B", "seqsel"): (13.75, 13.6381, 54.073),
    ("turing-530B", "full"): (49.05, 49.8926, 42.269), ("turing-530B", "seqsel"): (37.83, 34.4728, 53.539),
    ("megatron-1T", "full"): (94.42, 90.0809, 46.268), ("megatron-1T", "seqsel"): (71.49, 66.0407, 59.146),
}  # fmt: skip
"""Measured seconds of a step (arXiv:2205.05198, table 5), Calculon's seconds, and its GiB."""
GRID = {"kept": False, "shown": True}
CARDS = {
    "A100": ("a100-80", 8, 1600), "H100": ("h100", 8, 3200), "B200": ("b200", 8, 3200), "GB200": ("gb200", 64, 25600),
}  # fmt: skip
"""Accelerators, devices of a server and Gb/s of a server."""
CALIBRATE = (298, 335, 260, 251, 242)
"""Rows that set what products reach (``instances/workloads/step_rates.py``)."""
RULES = ("megatron-rule", "fully-sharded", "replicated-data", "alpa-stages", "galvatron-grid", "calculon-grid")
GIBIBYTE = 2**30


def table5(asked):
    """The eight runs of table 5: seconds and memory of this model, of Calculon, and measured."""
    folder, errors = data("calculon"), []
    for (model, kind), (measured_s, theirs_s, theirs_gib) in TABLE5.items():
        run = json.loads((folder / f"validation/tab5/{model}_{kind}.json").read_text(encoding="utf-8"))
        shared = kind == "seqsel"
        instance = read_calculon(
            folder / f"models/{model}.json", system=folder / "systems/a100_80g.json", devices=run["num_procs"],
            global_batch=run["batch_size"], micro_batch=[run["microbatch_size"]], tensor=run["tensor_par"],
            sequence_parallel=[shared], gathered="shown",
        )  # fmt: skip
        stages, chunks = run["pipeline_par"], run["pipeline_interleaving"]
        plan = StepPlan(
            instance=instance.name, tensor=run["tensor_par"], pipeline=stages, data=run["data_par"],
            interleaving=chunks, micro_batch=run["microbatch_size"], sequence_parallel=shared,
            option="selective" if shared else "none",
            recomputed=0 if shared else -(-instance.size // (stages * chunks)),
        )  # fmt: skip
        found = evaluate_step(instance, plan)
        ours_s, ours_gib = float(found.objective), float(found.details["memory_bytes"]) / GIBIBYTE
        errors.append(ours_s / measured_s - 1)
        yield {
            "run": f"{model} {kind}", "measured s": measured_s, "Calculon s": theirs_s, "ours s": f"{ours_s:.4g}",
            "against Calculon": signed(ours_s / theirs_s - 1), "against measured": signed(errors[-1]),
            "Calculon GiB": theirs_gib, "ours GiB": f"{ours_gib:.4g}", "memory": signed(ours_gib / theirs_gib - 1),
        }  # fmt: skip
    worst = max(map(abs, errors))
    yield f"Against what was measured: {mean(map(abs, errors)):.1%} in the mean, at most {worst:.1%}."


def grid(asked):
    """GPT-3 13B on 64 A100, batch 64: the proven best of Calculon's grid, and what a larger space gains."""
    folder = data("calculon")
    for tensor in (1, 2, 4):
        for gathered in GRID:
            instance = grid_instance(folder, tensor, gathered)
            best = {}
            for name, space in (("grid", Space(all_devices=True, recomputed=False)), ("all", Space())):
                search = Search(instance, space, Clock(Limits(), None))
                search.run()
                best[name] = search
            plan = best["grid"].best
            yield {
                "tensor": tensor, "gathered inputs": gathered, "pipeline": plan.pipeline, "data": plan.data,
                "micro-batch": plan.micro_batch, "interleaving": plan.interleaving, "option": plan.option,
                "best of the grid s": f"{best['grid'].best_s:.4f}", "best of all s": f"{best['all'].best_s:.4f}",
            }  # fmt: skip


def grid_instance(folder, tensor, gathered):
    return read_calculon(
        folder / "models/gpt3-13B.json", system=folder / "systems/a100_80g.json", tensor=tensor, gathered=gathered
    )


def ranks(asked):
    """Plans of that grid by Calculon itself (``--released``: a checkout of calculon-ai/calculon) and by ours."""
    if not asked.released:
        raise Skipped("give --released FOLDER, a checkout of calculon-ai/calculon")
    folder, pairs = data("calculon"), []
    program = Path(__file__).with_name("step_released.py")
    ran = subprocess.run(
        [sys.executable, str(program), asked.released, str(folder)], capture_output=True, text=True, check=True
    )
    instances = {(t, g): grid_instance(folder, t, g) for t in (1, 2, 4) for g in GRID}
    for (t, p, d, b, v, again, kind, redo, shard), theirs_s, _ in json.loads(ran.stdout):
        instance = instances[t, "shown" if redo else "kept"]
        plan = StepPlan(
            instance=instance.name, tensor=t, pipeline=p, data=d, micro_batch=b, interleaving=v, sharding=int(shard),
            sequence_parallel=kind == "rs_ag", option="selective" if again == "attn_only" else "none",
            recomputed=-(-instance.size // (p * v)) if again == "full" else 0,
        )  # fmt: skip
        found = evaluate_step(instance, plan)
        if found.objective is not None:
            pairs.append((theirs_s, float(found.objective)))
    pairs.sort()
    for count in (10, 100, len(pairs)):
        some = pairs[:count]
        errors = [abs(ours / theirs - 1) for theirs, ours in some]
        yield {
            "plans, the best of Calculon": len(some), "Kendall's τ": f"{tau(some):.3f}",
            "mean difference": f"{mean(errors):.2%}", "largest": f"{max(errors):.2%}",
        }  # fmt: skip


def tau(pairs):
    """Kendall's, without ties."""
    signs = [1 if (a[0] - b[0]) * (a[1] - b[1]) > 0 else -1 for place, a in enumerate(pairs) for b in pairs[:place]]
    return sum(signs) / len(signs)


def measured(asked):
    """Published steps with all degrees: predicted, and measured. Rows with a star have calibrated."""
    rows = json.loads(data("large_models/throughput.json").read_text(encoding="utf-8"))["rows"]
    for row in rows:
        instance, plan = of_row(row)
        found = evaluate_step(instance, plan)
        seconds = row["gbs"] * row["seq"] / (row["tokens_s_gpu"] * row["gpus"])
        told = row.get("memory_gib_stated")
        yield {
            "model": f"{row['model_stated']}{' *' if row['id'] in CALIBRATE else ''}",
            "devices": f"{row['gpus']} {row['gpu']}", "numbers": row["precision"],
            "t, p, c, e, d": ", ".join(str(getattr(plan, name)) for name in DEGREES),
            "measured s": f"{seconds:.4g}", "predicted s": f"{float(found.objective):.4g}",
            "error": signed(float(found.objective) / seconds - 1),
            "memory GiB": f"{float(found.details['memory_bytes']) / GIBIBYTE:.0f}" + (f" ({told:g})" if told else ""),
        }  # fmt: skip


DEGREES = ("tensor", "pipeline", "context", "expert", "data")


def of_row(row):
    """The instance and the plan of a published step; what it does not say is taken to be none."""
    card, server, network = CARDS[row["gpu"]]
    server, old = min(server, row["gpus"]), "Korthikanti" in row["source"]
    copies = row["gpus"] // (row["tp"] * row["pp"] * row["cp"])
    micro_batch = row["mbs"] or 1
    instance = read_transformer_pipeline(
        config_of(row), precision="fp8" if "8" in row["precision"].lower().replace("16", "") else "bf16",
        servers=row["gpus"] // server, gpus_per_server=server, accelerator=card,
        network_gigabit_per_s=network * server / CARDS[row["gpu"]][1], global_batch=row["gbs"], sequence=row["seq"],
        tensor=[row["tp"]], context=[row["cp"]], micro_batch=micro_batch, interleaving=64,
        fused_attention=not old, dropout=old,
    )  # fmt: skip
    rounds = row["gbs"] // (copies * micro_batch)
    chunks = row["vp"] or 1
    chunks = chunks if rounds % row["pp"] == 0 and chunks * row["pp"] <= instance.size else 1
    return instance, StepPlan(
        instance=instance.name, tensor=row["tp"], context=row["cp"], pipeline=row["pp"], data=copies, expert=row["ep"],
        interleaving=chunks, micro_batch=micro_batch, sequence_parallel=row["tp"] > 1,
        sharding=(2 if row["pp"] > 1 else 3) if row["fsdp"] else int(copies > 1),
        option="selective" if row["recompute"] == "selective" else "none",
        recomputed=-(-instance.size // (row["pp"] * chunks)) if row["recompute"] == "full" else 0,
    )  # fmt: skip


def config_of(row):
    """What a configuration of the model says."""
    if row["model"]:
        return json.loads(data(f"large_models/configs/{row['model']}.json").read_text(encoding="utf-8"))["config"]
    shape = row["shape"]
    longest = max(row["seq"], shape.get("positions", 1))
    return {
        "model_type": "gpt2", "n_layer": shape["layers"], "n_embd": shape["hidden"], "n_head": shape["heads"],
        "n_inner": shape["ffn"], "vocab_size": shape["vocab"], "n_positions": longest,
    }  # fmt: skip


def galvatron(asked):
    """Galvatron's plan for Llama-2-7B on eight devices of 36 GiB and the proven best, by our figures and its own."""
    folder = data("galvatron")
    config = json.loads(data("large_models/configs/llama-2-7b.json").read_text(encoding="utf-8"))["config"]
    ours = read_transformer_pipeline(
        config, precision="bf16", servers=1, accelerator="a100-80", memory_gigabytes=36 * GIBIBYTE / 1e9,
        global_batch=16, sequence=2048,
    )  # fmt: skip
    profiled = read_galvatron(
        folder / "computation_profiling_bf16_llama2-7b_all.json",
        memory=folder / "memory_profiling_bf16_llama2-7b_all.json",
        bandwidth=folder / "allreduce_bandwidth_1nodes_8gpus_per_node.json",
        layers=[32], hidden=4096, memory_gib=36.0,
    )  # fmt: skip
    for told, instance in (("ours", ours), ("its profile", profiled)):
        theirs = read_plan(
            instance, folder / "galvatron_config_llama2-7b_1nodes_8gpus_per_node_36GB_bf16.json", "galvatron"
        )
        search = Search(instance, Space(), Clock(Limits(), None))
        search.run()
        for name, each in (("Galvatron", theirs), ("proven best", search.best)):
            found = evaluate_step(instance, each)
            yield {
                "times": told, "plan": name, **{degree: getattr(each, degree) for degree in SHOWN},
                "step s": f"{float(found.objective):.4g}",
                "above the best": signed(float(found.objective) / search.best_s - 1),
                "memory GiB": f"{float(found.details['memory_bytes']) / GIBIBYTE:.1f}",
                "fits": "yes" if found.feasible else "no",
            }  # fmt: skip


SHOWN = ("tensor", "pipeline", "data", "micro_batch", "sharding", "recomputed")


def rules(asked):
    """How much longer than the proven best step the plans of rules take; none: no such plan fits."""
    for name in asked.names:
        instance = ddlopt.load(name)
        best = ddlopt.solve(instance, time_limit=asked.time_limit)
        row = {"instance": name.removeprefix("deployment/step-"), "best s": f"{best.objective:.4g}"}
        for rule in RULES:
            found = ddlopt.solve(instance, rule, time_limit=asked.time_limit).objective
            row[rule] = "none" if found is None else signed(found / best.bound - 1)
        yield row


def signed(part):
    """A difference in percent."""
    return f"{100 * part:+.1f} %" if abs(part) >= 5e-4 else "0 %"


NAMES = tuple(
    f"deployment/step-{model}-{cluster}"
    for model in ("llama3-8b", "llama3-70b", "mixtral-8x7b", "deepseek-v3")
    for cluster in ("aws-p4d", "dgx-h100", "gb200-nvl72")
)
BENCH = Benchmark(
    table5, grid, ranks, measured, galvatron, rules,
    names=Option(NAMES, "bundled instances", quick=NAMES[:1]),
    released=Option("", "a checkout of calculon-ai/calculon"),
    time_limit=Option(120.0, quick=20.0),
)  # fmt: skip
