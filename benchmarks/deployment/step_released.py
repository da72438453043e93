"""Runs Calculon's released program over a grid of plans; called by ``benchmarks deployment/step``, as a process.

It is given a checkout of calculon-ai/calculon and the folder of its models, systems and runs, and prints JSON: a list
of degrees with seconds and GiB. ``pandas`` and ``psutil``, which it imports and does not use here, need not be there.
"""

import json
import logging
import sys
import types
from pathlib import Path


def main(checkout, folder):
    for name in ("pandas", "psutil"):
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.path.insert(0, checkout)
    from calculon.llm.llm import Llm
    from calculon.system import System

    read = lambda name: json.loads((Path(folder) / name).read_text(encoding="utf-8"))  # noqa: E731
    usual, model, system = (
        read("validation/tab5/megatron-22B_full.json"),
        read("models/gpt3-13B.json"),
        read("systems/a100_80g.json"),
    )
    found = []
    for plan in plans():
        tensor, pipeline, data, micro_batch, chunks, again, kind, redo, sharded = plan
        run = usual | {
            "num_procs": 64, "batch_size": 64, "tensor_par": tensor, "pipeline_par": pipeline, "data_par": data,
            "microbatch_size": micro_batch, "pipeline_interleaving": chunks, "activation_recompute": again,
            "tensor_par_comm_type": kind, "seq_par_ag_redo": redo, "optimizer_sharding": sharded,
        }  # fmt: skip
        try:
            program = Llm(Llm.Application(model), logging.getLogger())
            where = System(system)
            program.compile(where, Llm.Execution.from_json(run))
            program.run(where)
        except (AssertionError, Llm.Error):
            continue
        told = program.get_stats_json(False)
        found.append((plan, told["total_time"], told["proc_mem_tier1_cap_req"] / 2**30))
    print(json.dumps(found))


def plans():
    """All that use 64 devices, without what is not in our model."""
    for tensor in (1, 2, 4):
        for pipeline in (1, 2, 4, 8, 16, 32):
            if 64 % (tensor * pipeline):
                continue
            data, blocks = 64 // tensor // pipeline, -(-40 // pipeline)
            for micro_batch in (1, 2, 4, 8, 16, 32, 64):
                for chunks in range(1, blocks + 1):
                    if blocks % chunks or 64 % (data * micro_batch):
                        continue
                    for again in ("none", "attn_only", "full"):
                        for kind, redo in kinds(tensor, again):
                            for sharded in (False, True) if data > 1 else (False,):
                                yield tensor, pipeline, data, micro_batch, chunks, again, kind, redo, sharded


def kinds(tensor, again):
    """All-reduces; gathers and scatters, of which the former are made again or not."""
    yield "ar", False
    if tensor > 1:
        yield "rs_ag", again == "attn_only"
        if again == "none":
            yield "rs_ag", True


if __name__ == "__main__":
    main(*sys.argv[1:])
