"""What plans for training steps send between servers, as instances of topology."""

import pytest
from refusals import one_line
from step_cases import plans

import ddlopt
from ddlopt.instances.readers.models.transformer_pipeline import read_transformer_pipeline
from ddlopt.instances.workloads.step_traffic import traffic
from ddlopt.instances.writers import export_plan
from ddlopt.models.deployment import StepPlan
from ddlopt.models.deployment.step.evaluate import evaluate_step
from ddlopt.models.errors import OptionError
from ddlopt.models.topology.instance import TopologyInstance

MIXTRAL = {"num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
MIXTRAL |= {"intermediate_size": 96, "vocab_size": 200, "max_position_embeddings": 32, "model_type": "mixtral"}
MIXTRAL |= {"num_local_experts": 8, "num_experts_per_tok": 2}
OPTIONS = {"precision": "bf16", "servers": 4, "gpus_per_server": 2, "global_batch": 8, "sequence": 32, "overlap": 0.0}
WHOLE = read_transformer_pipeline(MIXTRAL, **OPTIONS, context=[1, 2], tensor=[1, 2])
INSIDE, OUTSIDE = WHOLE.tiers
FAST = INSIDE.model_dump() | {"bandwidth_bytes_per_s": 1e25, "latency_s": 0.0}
INSTANCE = WHOLE.changed(tiers=[FAST, OUTSIDE.model_dump() | {"latency_s": 0.0}], orders=WHOLE.orders[:1])


def node_s(job):
    """What the busiest server takes if all its interfaces are busy."""
    return float(job.node_bytes.max()) / (job.degree * job.link_bandwidth_bytes_per_s)


def test_servers_send_what_the_step_waits_for():
    """Without stages, with nothing hidden and nothing else to wait for the step is what servers compute and send."""
    whole = [plan for plan in plans(INSTANCE) if plan.pipeline == 1 and plan.devices == 8]
    kinds = set()
    for plan in whole[::11]:
        found = evaluate_step(INSTANCE, plan)
        if found.objective is None:
            continue
        job = traffic(INSTANCE, plan)
        assert job.compute_s + node_s(job) == pytest.approx(float(found.objective), rel=1e-9), plan
        kinds.add((plan.tensor > 1, plan.context > 1, plan.expert, plan.sharding))
    assert len(kinds) > 12


def test_stages_send_to_the_next_and_back():
    plan = StepPlan(instance=INSTANCE.name, pipeline=4, data=2, interleaving=1, micro_batch=1)
    job = traffic(INSTANCE, plan)
    # Ranks are data, then pipeline: a server has both copies of a stage, whose gradients stay inside.
    assert not job.allreduce_groups
    sent = 2 * 4 * INSTANCE.handed_bytes
    assert job.traffic_bytes.tolist() == [[sent if abs(a - b) == 1 else 0 for b in range(4)] for a in range(4)]
    two = traffic(INSTANCE.changed(global_batch=16), plan.changed(pipeline=2, data=4, interleaving=2))
    assert [list(group.members) for group in two.allreduce_groups] == [[0, 1], [2, 3]]
    # Three hand-overs between chunks, of which two lead from the first stage to the second.
    each = 2 * 4 * INSTANCE.handed_bytes
    assert two.traffic_bytes[0, 2] == 2 * each + each
    assert two.traffic_bytes[0, 3] == 0


def test_devices_that_a_server_has_left_are_in_the_next():
    plan = StepPlan(instance=INSTANCE.name, data=8, expert=4, micro_batch=1)
    job = traffic(
        INSTANCE, plan, tier=INSIDE.name, degree=2, bandwidth_bytes_per_s=5.0, optics="duplex", overlap="full"
    )
    fabric = job.servers, job.degree, job.link_bandwidth_bytes_per_s, job.optics, job.overlap
    assert fabric == (4, 2, 5.0, "duplex", "full")
    assert job.traffic_bytes[0, 1] == job.traffic_bytes[1, 0] > 0
    assert not job.traffic_bytes[:2, 2:].any()
    assert "expert 4, data 8" in job.source


def test_the_file_is_an_instance(tmp_path):
    plan = ddlopt.solve(WHOLE).solution.changed(
        expert=8, data=8, tensor=1, context=1, pipeline=1, sequence_parallel=False, micro_batch=1
    )
    (tmp_path / "job.json").write_text(export_plan(WHOLE, plan, "topology", gigabit_per_s=8.0), encoding="utf-8")
    job = ddlopt.load(tmp_path / "job.json")
    assert isinstance(job, TopologyInstance)
    assert job.link_bandwidth_bytes_per_s == 1e9
    assert ddlopt.solve(job, "topology-finder").checked


BAD = {
    "no tier": ({"tier": "rack"}, "tier is 'rack'; 'mixtral-step-k8' has: server, network"),
    "one unit": ({"tier": "network"}, "whose units have 8 devices; a plan on 8 sends nothing between them"),
    "no interface": ({"degree": 0}, "degree is 0"),
    "a word": ({"degree": "two"}, "degree is 'two'; it must be a whole number"),
    "no bandwidth": ({"gigabit_per_s": 0.0}, "gigabit_per_s is 0"),
    "optics": ({"optics": "both"}, "optics is 'both'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_options_are_a_line(case):
    options, told = BAD[case]
    plan = StepPlan(instance=WHOLE.name, data=8, sharding=3)
    with one_line(OptionError, told):
        export_plan(WHOLE, plan, "topology", **options)


def test_copies_that_send_nothing_are_no_job():
    alone = WHOLE.changed(weight_bytes=0, gradient_bytes=0)
    with one_line(OptionError, "sends nothing between units of 'server'"):
        traffic(alone, StepPlan(instance=alone.name, data=8))
