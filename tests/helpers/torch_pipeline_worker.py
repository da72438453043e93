"""One rank of a pipeline, for tests of exported schedules: `torch_pipeline_worker.py SPEC RANK`, with PyTorch.

It runs a schedule file on processes of gloo, and writes which passes ran in which order, and the gradients' errors.
"""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

WIDTH, SAMPLES = 4, 2


def layer(chunk):
    """The same on every rank."""
    torch.manual_seed(chunk)
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh())


def noting(stage, chunk, passes):
    """Note the passes of a stage when they begin."""

    def noted(name, label):
        original = getattr(stage, name)

        def run(micro_batch, *args, **kwargs):
            passes.append(f"{chunk}{label(kwargs)}{micro_batch}")
            return original(micro_batch, *args, **kwargs)

        setattr(stage, name, run)

    noted("forward_one_chunk", lambda _: "F")
    noted("backward_one_chunk", lambda given: "B" if given.get("full_backward", True) else "I")
    noted("backward_weight_one_chunk", lambda _: "W")


def main(spec_file, rank):
    spec = json.loads(Path(spec_file).read_text())
    folder, chunks, n = Path(spec["folder"]), spec["chunks"], spec["micro_batches"]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder / 'store'}", rank=rank, world_size=spec["ranks"])
    passes, stages, own = [], [], {}
    for chunk, device in enumerate(chunks):
        if device == rank:
            own[chunk] = layer(chunk)
            stages.append(PipelineStage(own[chunk], chunk, len(chunks), torch.device("cpu")))
            noting(stages[-1], chunk, passes)
    schedule = _PipelineScheduleRuntime(stages, n, loss_fn=torch.nn.functional.mse_loss, scale_grads=False)
    schedule._load_csv(spec["schedule"])
    torch.manual_seed(1000)
    inputs, targets = torch.randn(n * SAMPLES, WIDTH), torch.randn(n * SAMPLES, WIDTH)
    first, last = chunks[0] == rank, chunks[-1] == rank
    schedule.step(*([inputs] if first else []), **({"target": targets, "losses": []} if last else {}))
    whole = torch.nn.Sequential(*map(layer, range(len(chunks))))
    for part, target in zip(inputs.chunk(n), targets.chunk(n), strict=True):
        torch.nn.functional.mse_loss(whole(part), target).backward()
    worst = 0.0
    for chunk, module in own.items():
        for mine, theirs in zip(module.parameters(), whole[chunk].parameters(), strict=True):
            worst = max(worst, float((mine.grad - theirs.grad).abs().max()))
    (folder / f"rank-{rank}.json").write_text(json.dumps({"passes": passes, "error": worst}))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
