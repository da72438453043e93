"""Galvatron's profiles as training steps, its plans as solutions: by hand, read back, refused in one line."""

import json

import pytest
from refusals import one_line
from shared_data import shared_data
from step_cases import plans

import ddlopt
from ddlopt.instances.readers import convert
from ddlopt.instances.writers import export_plan, read_plan
from ddlopt.models.deployment.step.evaluate import evaluate_step
from ddlopt.models.errors import DdloptError, InstanceError, OptionError, SolutionError

TIMES = {"layernum[2]_bsz1_seq16": 9.0, "layertype_0_bsz1_seq16": 4.0, "layertype_other_bsz1_seq16": 6.0}
TIMES |= {"layertype_0_bsz2_seq16": 3.5, "layertype_other_bsz2_seq16": 4.0}
ENDS = {"model_states": {"1": 16, "2": 8}, "activation": {"1": 0.25, "2": 0.125}}
MEMORY = {
    "1_1_2_sp": {"layernum[1]_bsz8_seq16_rank0_ms": 9.0},
    "layertype_0_sp": {
        "16": {"parameter_size": 4.0, "tp_activation_per_bsz_dict": {"1": 2.0, "2": 1.0, "checkpoint": 0.5}}
    },
    "other_memory_pp_off_sp": {"16": ENDS},
    "other_memory_pp_on_first_sp": {"16": ENDS},
    "other_memory_pp_on_last_sp": {"16": ENDS},
}
RINGS = {"allreduce_size_4_consec_1": 8.0, "allreduce_size_2_consec_1": 100.0, "allreduce_size_2_consec_0": 5.0}
MEBIBYTE = 2**20


def files(tmp_path, times=TIMES, memory=MEMORY, rings=RINGS, rings_name="allreduce_bandwidth_2nodes_2gpus_per_node"):
    written = {}
    named = {"times": ("computation_profiling_bf16_tiny_all", times), "memory": ("memory_profiling_bf16_tiny", memory)}
    for which, (name, data) in (named | {"bandwidth": (rings_name, rings)}).items():
        written[which] = tmp_path / f"{name}.json"
        written[which].write_text(json.dumps(data), encoding="utf-8")
    return written


def read(tmp_path, given=None, **options):
    given = given or files(tmp_path)
    settings = {"memory": given["memory"], "bandwidth": given["bandwidth"], "layers": [4], "hidden": 8}
    return convert(given["times"], "galvatron", **settings | {"memory_gib": 1.0, "global_batch": 8} | options)


def way(block, tensor, micro_batch):
    return next(each for each in block.ways if (each.tensor, each.micro_batch) == (tensor, micro_batch))


def test_blocks_by_hand(tmp_path):
    found = read(tmp_path)
    assert (found.name, found.devices, found.size) == ("bf16-tiny-all-k4", 4, 4)
    assert found.memory_bytes == 2**30
    assert (found.weight_bytes, found.gradient_bytes, found.optimizer_bytes) == (2, 2, 12)
    assert [(tier.size, tier.bandwidth_bytes_per_s) for tier in found.tiers] == [(2, 100e9), (4, 4e9)]
    assert found.handed_bytes == 16 * 8 * 2
    none, full = way(found.blocks[0], 1, 2).options
    assert (none.forward_s, none.backward_s, full.backward_s) == pytest.approx((7e-3, 14e-3, 21e-3))
    assert (none.kept_bytes, full.kept_bytes, full.transient_bytes) == (4 * MEBIBYTE, MEBIBYTE, 3 * MEBIBYTE)
    assert way(found.blocks[0], 1, 2).parameters == MEBIBYTE
    # What was not measured is on the line through 4 and 7 ms: 3 ms a sample, and 1 ms besides.
    assert way(found.blocks[0], 1, 4).options[0].forward_s == pytest.approx(13e-3)
    two = way(found.blocks[0], 2, 2)
    assert two.sequence_parallel
    assert two.options[0].forward_s == pytest.approx(4e-3)
    assert [option.tensor_bytes for option in two.options] == [6 * 2 * 256 / 2, 9 * 2 * 256 / 2]
    assert (two.parameters, two.options[1].kept_bytes) == (MEBIBYTE / 2, 2 * MEBIBYTE / 4)
    head = way(found.head, 1, 2)
    assert (head.options[0].forward_s, head.parameters) == (pytest.approx(4e-3), MEBIBYTE)
    assert head.options[0].kept_bytes == MEBIBYTE / 2
    assert ddlopt.solve(found).status == "optimal"


def test_one_server_where_no_name_tells(tmp_path):
    rings = {"allreduce_size_4_consec_1": 8.0}
    found = read(tmp_path, files(tmp_path, rings=rings, rings_name="rings"), devices=2)
    assert [(tier.size, tier.bandwidth_bytes_per_s) for tier in found.tiers] == [(2, 8e9)]


LONGER = {"layertype_0_bsz1_seq32": 9.0, "layertype_other_bsz1_seq32": 9.0}
BAD = {
    "no times": ({"times": {"a": 1}}, {}, InstanceError, "it is no profile of times"),
    "a negative time": (
        {"times": TIMES | {"layertype_0_bsz1_seq16": -1}},
        {},
        InstanceError,
        "expected a number above",
    ),
    "no memory": ({"memory": {}}, {}, InstanceError, "layertype_0.16.tp_activation_per_bsz_dict is missing"),
    "no head": (
        {"memory": {key: MEMORY[key] for key in MEMORY if "last" not in key}},
        {},
        InstanceError,
        "other_memory_pp_on_last_sp.16.model_states is missing",
    ),
    "no rings": ({"rings": {"b": 1}}, {}, InstanceError, "it is no profile of bandwidths"),
    "a tier missing": ({}, {"devices": 8}, OptionError, "has no allreduce_size_8_consec_1"),
    "slower inside": ({"rings": RINGS | {"allreduce_size_2_consec_1": 2}}, {}, InstanceError, "slower_inside to true"),
    "0 layers": ({}, {"layers": [0]}, OptionError, "list how many blocks there are of each type"),
    "no layers said": ({}, {"layers": None}, OptionError, "no profile of Galvatron says what layers is; set it"),
    "a type that was not measured": ({}, {"layers": [1, 1]}, InstanceError, "layertype_1 was not measured"),
    "no memory of a device": ({}, {"memory_gib": 0.0}, OptionError, "memory_gib is 0"),
    "several lengths": ({"times": TIMES | LONGER}, {}, OptionError, "has samples of 16, 32 tokens; set sequence"),
    "another length": ({}, {"sequence": 8}, OptionError, "sequence is 8, and"),
    "no such numbers": ({}, {"precision": "int4"}, OptionError, "precision is 'int4'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_profiles_are_a_line(case, tmp_path):
    given, options, error, told = BAD[case]
    with one_line(error, told):
        read(tmp_path, files(tmp_path, **given), **options)
    if case == "slower inside":
        assert read(tmp_path, files(tmp_path, **given), slower_inside=True).slower_inside
    if case == "several lengths":
        with pytest.raises(DdloptError):
            read(tmp_path, files(tmp_path, **given), sequence=32)  # times were measured, memory was not
        assert read(tmp_path, files(tmp_path, **given), sequence=16).size == 4


def test_plans_are_read_back(tmp_path):
    instance, count = read(tmp_path, layers=[5]), 0
    for plan in plans(instance):
        if not evaluate_step(instance, plan).feasible:
            continue
        if plan.sharding == 1 or plan.devices < instance.devices or plan.order != instance.orders[0]:
            continue
        if plan.option == "full":
            longest = -(-instance.size // plan.pipeline)
            again = plan.model_copy(update={"option": "none", "recomputed": longest})
        else:
            again = plan
        (tmp_path / "plan.json").write_text(export_plan(instance, plan, "galvatron"), encoding="utf-8")
        assert read_plan(instance, tmp_path / "plan.json", "galvatron") == again
        count += 1
    assert count > 50


def test_a_plan_that_would_be_read_as_another_is_refused(tmp_path):
    instance = read(tmp_path)
    fits = next(each for each in plans(instance) if each.devices == 4 and evaluate_step(instance, each).feasible)
    for change, says in (({"data": fits.data // 2}, "idle devices, but this one uses 2 of 4"), ({"data": 1}, "uses 1")):
        with pytest.raises(OptionError, match=says):
            export_plan(instance, fits.model_copy(update=change), "galvatron")


PLAN = {"pp_deg": 2, "tp_sizes_enc": "1,1,1,1", "dp_types_enc": "0,0,0,0", "checkpoint": "1,0,0,1", "use_sp": "0,0,0,0"}
PLAN |= {"global_bsz": 8, "chunks": 2, "pp_division": "2,2", "default_dp_type": "zero2", "vtp": 1}
BAD_PLANS = {
    "no plan": ({"pp_deg": None}, "pp_deg is None"),
    "unlike degrees": ({"tp_sizes_enc": "1,1,2,2"}, "tp_sizes_enc has 1 and 2"),
    "too few blocks": ({"checkpoint": "1"}, "checkpoint has 1 blocks, and the instance 4"),
    "unlike stages": ({"checkpoint": "1,1,0,0"}, "stages make 2, 0 blocks again"),
    "uneven stages": ({"pp_division": "3,1"}, "stages of '3,1' blocks; plans here have 2,2"),
    "another batch": ({"global_bsz": 9}, "global_bsz is 9, and the instance has 8"),
    "a part of a micro-batch": ({"chunks": 3}, "8 samples are no multiple of 6"),
    "Ulysses": ({"use_sp": "1,1,1,1"}, "Ulysses is not modelled"),
    "sharding": ({"default_dp_type": "zero1"}, "default_dp_type is 'zero1'"),
}


def test_somebody_s_plan(tmp_path):
    instance = read(tmp_path)
    (tmp_path / "plan.json").write_text(json.dumps(PLAN), encoding="utf-8")
    plan = ddlopt.import_plan(instance, tmp_path / "plan.json", "galvatron")
    assert (plan.pipeline, plan.data, plan.micro_batch, plan.sharding, plan.recomputed) == (2, 2, 2, 2, 1)
    assert evaluate_step(instance, plan).feasible


@pytest.mark.parametrize("case", BAD_PLANS)
def test_bad_plans_are_a_line(case, tmp_path):
    change, told = BAD_PLANS[case]
    (tmp_path / "plan.json").write_text(json.dumps(PLAN | change), encoding="utf-8")
    with one_line(SolutionError, told):
        read_plan(read(tmp_path), tmp_path / "plan.json", "galvatron")


NAME = "llama2-7b_1nodes_8gpus_per_node"


def test_its_plan_for_llama_is_not_the_best_by_its_own_profile():
    folder = shared_data("galvatron")
    profiles = {"memory": folder / "memory_profiling_bf16_llama2-7b_all.json"}
    profiles |= {"bandwidth": folder / f"allreduce_bandwidth_{NAME.partition('_')[2]}.json"}
    instance = convert(
        folder / "computation_profiling_bf16_llama2-7b_all.json", "galvatron", layers=[32], hidden=4096,
        memory_gib=36.0, **profiles,
    )  # fmt: skip
    theirs = read_plan(instance, folder / f"galvatron_config_{NAME}_36GB_bf16.json", "galvatron")
    assert (theirs.data, theirs.micro_batch, theirs.sharding, theirs.recomputed) == (8, 2, 3, 20)
    best = ddlopt.solve(instance)
    assert best.status == "optimal"
    assert evaluate_step(instance, theirs).objective / best.objective == pytest.approx(1.157, abs=0.01)
