"""Plans for training steps as files of frameworks: read back, those of others, and what is refused."""

import json

import pytest
from refusals import one_line
from step_cases import plans

import ddlopt
from ddlopt.analysis.advice import advice, findings
from ddlopt.instances.readers.models.transformer_pipeline import read_transformer_pipeline
from ddlopt.instances.writers import export_plan, import_plan, read_plan
from ddlopt.models.deployment.step.evaluate import evaluate_step
from ddlopt.models.deployment.step.instance import ORDERS
from ddlopt.models.errors import OptionError, SolutionError

SMALL = {"num_hidden_layers": 5, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
SMALL |= {"intermediate_size": 96, "vocab_size": 200, "max_position_embeddings": 32, "model_type": "llama"}
MIXTRAL = SMALL | {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
OPTIONS = {"precision": "bf16", "servers": 2, "gpus_per_server": 4, "global_batch": 8, "sequence": 32}
INSTANCES = {
    "dense": read_transformer_pipeline(SMALL, **OPTIONS, context=[1, 2]),
    "experts": read_transformer_pipeline(MIXTRAL, **OPTIONS),
}


def feasible(instance):
    """Plans of an instance, a few of every kind."""
    found = [plan for number, plan in enumerate(plans(instance)) if number % 37 == 0]
    return [plan for plan in found if evaluate_step(instance, plan).feasible]


@pytest.mark.parametrize("which", INSTANCES)
def test_flags_of_megatron_are_read_back(which, tmp_path):
    instance, tried = INSTANCES[which], feasible(INSTANCES[which])
    assert len(tried) > 100
    for plan in tried:
        (tmp_path / "flags.txt").write_text(export_plan(instance, plan, "megatron"), encoding="utf-8")
        again = read_plan(instance, tmp_path / "flags.txt", "megatron")
        longest = -(-instance.size // (plan.pipeline * plan.interleaving))
        if plan.option == "full":
            plan = plan.model_copy(update={"option": "none", "recomputed": longest})
        assert again == plan
    assert import_plan(instance, tmp_path / "flags.txt") == tried[-1]


def test_other_frameworks_read_back_what_they_can_say(tmp_path):
    instance, counts = INSTANCES["dense"], {"torchtitan": 0, "deepspeed": 0}
    for plan in feasible(instance):
        for name in counts:
            try:
                text = export_plan(instance, plan, name)
            except OptionError:
                continue
            (tmp_path / name).write_text(text, encoding="utf-8")
            again = read_plan(instance, tmp_path / name, name)
            counts[name] += 1
            if "# torchtitan " in text or plan.option == "full":
                continue
            copied = plan.model_copy(update={"sharding": 0}) if name == "torchtitan" and plan.data == 1 else plan
            assert again == copied
            if name == "torchtitan":
                assert import_plan(instance, tmp_path / name) == plan
    assert min(counts.values()) > 20


FLAGS = """torchrun --nproc-per-node 4 pretrain_gpt.py --tensor-model-parallel-size=2 \\
  --pipeline-model-parallel-size 2 --sequence-parallel --micro-batch-size 2 --global-batch-size 8 \\
  --num-layers 5 --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \\
  --use-distributed-optimizer --lr 1e-4 # --context-parallel-size 2
"""


def test_somebody_s_flags_are_a_plan(tmp_path, refused):
    instance = INSTANCES["dense"]
    (tmp_path / "mine.sh").write_text(FLAGS, encoding="utf-8")
    plan = read_plan(instance, tmp_path / "mine.sh", "megatron")
    degrees = (plan.tensor, plan.context, plan.pipeline, plan.data, plan.micro_batch, plan.sharding)
    assert degrees == (2, 1, 2, 2, 2, 1)
    assert (plan.option, plan.recomputed, plan.sequence_parallel, plan.order) == ("none", 3, True, ORDERS[0])
    assert ddlopt.import_plan(instance, tmp_path / "mine.sh", "megatron") == plan
    lines = findings(instance, plan, ddlopt.solve(instance, time_limit=30))
    assert lines[0].startswith("time goes to: ")
    assert any("no plan takes less than" in line for line in lines)
    assert any("above that" in line for line in lines)


def test_degrees_that_a_job_has_not_are_answered_with_those_it_has(tmp_path):
    instance = INSTANCES["dense"]
    (tmp_path / "mine.sh").write_text("--tensor-model-parallel-size 2", encoding="utf-8")
    without = read_plan(instance, tmp_path / "mine.sh", "megatron")
    assert advice(instance, without) == ["this job has these degrees with sequence parallelism only"]
    assert advice(instance, without.model_copy(update={"tensor": 8}))[0].startswith("this job has: tensor 1, 2")
    assert "tensor 2" in evaluate_step(instance, without).violations[0].where


BAD = {
    "nothing": ("megatron", "echo", "there are no flags of Megatron-LM"),
    "a quote": ("megatron", '--a "', "cannot be split into flags"),
    "no number": ("megatron", "--tensor-model-parallel-size two", "expected a whole number of at least 1"),
    "another batch": ("megatron", "--global-batch-size 9", "--global-batch-size is 9, and the instance has 8"),
    "no copies": ("megatron", "--tensor-model-parallel-size 3", "8 devices are no multiple of 3"),
    "no words": ("megatron", "\n", "there are no flags of Megatron-LM"),
    "misspelt": ("megatron", "--seqence-parallel", "is no flag of Megatron-LM; did you mean --sequence-parallel?"),
    "part of a chunk": ("megatron", "--num-layers-per-virtual-pipeline-stage 3", "5 blocks are no multiple of 3"),
    "a long word": ("megatron", f"--micro-batch-size {'9' * 5000}", "9...9"),
    "no toml": ("torchtitan", "[", "not valid TOML"),
    "no table of training": ("torchtitan", "training = 1\n[parallelism]", "training is 1; expected an object"),
    "another batch of torchtitan": ("torchtitan", "[parallelism]\n[training]\nglobal_batch_size = 9", "size is 9, and"),
    "no table": ("torchtitan", "a = 1", "there is no table [parallelism]"),
    "no json": ("deepspeed", "{", "not valid JSON"),
    "no object": ("deepspeed", json.dumps({"zero_optimization": True}), "is True; expected an object"),
    "a type that is none": ("galvatron", json.dumps({"pp_deg": 1, "default_dp_type": []}), "default_dp_type is"),
    "a stage": ("deepspeed", json.dumps({"zero_optimization": {"stage": 7}}), "it is 0 to 3"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_a_line(case, tmp_path):
    name, text, told = BAD[case]
    (tmp_path / "file").write_text(text, encoding="utf-8")
    with one_line(SolutionError, told):
        read_plan(INSTANCES["dense"], tmp_path / "file", name)


def test_formats_that_are_not_read_say_so(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with one_line(OptionError, "is read by import-plan alone"):
        read_plan(INSTANCES["dense"], tmp_path / "file", "table")
