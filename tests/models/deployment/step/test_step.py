"""Training steps by hand, plans broken in every way, bad data, and the bound against all plans."""

from fractions import Fraction

import pytest
from refusals import one_line
from step_cases import best_of_all, drawn
from volume import for_each, seeds

from ddlopt.models.deployment import StepInstance, StepPlan
from ddlopt.models.deployment.step.bounds import exact_step_bound, step_bound
from ddlopt.models.deployment.step.evaluate import evaluate_step
from ddlopt.models.deployment.step.places import chunk_sizes, members
from ddlopt.models.errors import InfeasibleError, InstanceError


def option(name, forward, backward, kept=0.0, transient=0.0, **sent):
    sizes = {"kept_bytes": kept, "transient_bytes": transient} | sent
    return {"name": name, "forward_s": forward, "backward_s": backward, **sizes}


def way(parameters, *options, **degrees):
    return {"tensor": 1, "micro_batch": 1, "parameters": parameters, "options": list(options)} | degrees


KEPT, FULL = option("none", 1, 2, kept=8), option("full", 1, 3, kept=1, transient=8)
LESS = option("selective", 1, 2.5, kept=6)
TABLE, WORDS = option("none", 0.5, 0.5), option("none", 1, 2, kept=2, transient=3)
SPLIT = {"tensor_bytes": 6.0, "messages": 4}
DATA = {
    "name": "by hand",
    "embedding": {"name": "embedding", "ways": [way(4, TABLE), way(2, TABLE, tensor=2)]},
    "blocks": [
        {
            "name": "block",
            "count": 4,
            "ways": [
                way(10, KEPT, LESS, FULL),
                way(5, *({**each, "forward_s": 0.5} | SPLIT for each in (KEPT, LESS, FULL)), tensor=2),
            ],
        }
    ],
    "head": {"name": "head", "ways": [way(4, WORDS), way(2, option("none", 1, 1), tensor=2)]},
    "devices": 8,
    "memory_bytes": 1000,
    "tiers": [
        {"name": "server", "size": 2, "bandwidth_bytes_per_s": 8, "latency_s": 0.125},
        {"name": "network", "size": 8, "bandwidth_bytes_per_s": 2, "latency_s": 0.25},
    ],
    "global_batch": 8,
    "handed_bytes": 1,
    "weight_bytes": 2,
    "gradient_bytes": 4,
    "optimizer_bytes": 12,
    "optimizer_s": 0.5,
    "overlap": 0.5,
}  # fmt: skip


def instance(**changes):
    return StepInstance.from_data(DATA | changes)


def plan(**degrees):
    return StepPlan(instance="by hand", **degrees)


@pytest.mark.parametrize("exact", [False, True])
def test_stages_by_hand(exact):
    # Two stages of two blocks on neighbours in a server, four copies: the first has the embedding, the last the head.
    found = evaluate_step(
        instance(), plan(pipeline=2, data=4, sharding=0, order=("tensor", "context", "pipeline", "data")), exact
    )
    handed = 2 * (1 / 8 + 1 / 8)
    first, last = 2 * 3 + 1 + handed, 2 * 3 + 3 + handed
    # Rings of four copies, one in each server: 3/4 of 24 parameters' gradients twice, over 2 bytes a second.
    ring = 2 * 3 / 4 * 24 * 4 / 2 + 0.25
    ends = (ring - 0.5 * 4.5 + 24 * 0.5, ring - 0.5 * 6 + 24 * 0.5)
    assert found.feasible
    assert found.objective == 2 * last + first + max(ends)
    # The first stage has two micro-batches in flight, the last one; a head keeps its own once.
    assert found.details["memory_bytes"] == 24 * 18 + max(2 * 2 * 8, 2 * 8 + 2 + 3)
    assert found.details["micro_batches"] == 2
    assert isinstance(evaluate_step(instance(), plan(), exact=True).objective, Fraction)


def test_interleaving_by_hand():
    found = evaluate_step(instance(), plan(pipeline=2, interleaving=2, data=2, micro_batch=1, sharding=1))
    # Neighbours in the pipeline are behind the copies, in other servers; every chunk is handed on.
    handed = 2 * 2 * (1 / 2 + 0.25)
    first, last = 7 + handed, 9 + handed
    scattered, gathered = 24 * 4 / 2 / 8 + 0.125, 24 * 2 / 2 / 8 + 0.125
    end = max(0, scattered + gathered - 0.5 * 4.5) + 12 * 0.5
    assert found.objective == 4 * last + first / 2 + end
    # Three chunks more than a stage has ahead of it: 2 (2 - 1) + 2 + 1 = 5 of half a stage.
    assert found.details["activations_bytes"] == 5 / 2 * 2 * 8
    assert found.details["optimizer_bytes"] == 24 * 12 / 2


def test_sharding_and_recomputation_by_hand():
    whole = {level: evaluate_step(instance(overlap=0), plan(data=8, sharding=level)) for level in range(4)}
    parameters, work = 48, 4 * 3 + 1 + 3
    # One ring through four servers of two: over a fourth of 2 bytes a second each, a device's own link is faster.
    gathered = 7 / 8 * parameters * 2 / (2 * 2) + 0.25
    scattered = 7 / 8 * parameters * 4 / (2 * 2) + 0.25
    ends = (2 * (scattered - 0.25) + 0.25, scattered + gathered, scattered + gathered, scattered + 2 * gathered)
    for level, found in whole.items():
        assert found.objective == work + ends[level] + parameters / (8 if level else 1) * 0.5
        state = {0: 18, 1: 6 + 12 / 8, 2: 2 + 16 / 8, 3: 18 / 8}[level] * parameters
        more = 2 * 10 * 2 if level == 3 else 0
        assert found.details["memory_bytes"] == state + 4 * 8 + 2 + 3 + more
    again = evaluate_step(instance(overlap=0), plan(data=8, sharding=3, recomputed=3))
    assert again.objective == whole[3].objective + 3
    assert again.details["activations_bytes"] == 8 + 3 * 1 + 2
    assert again.details["transient_bytes"] == 8 + 2 * 10 * 2
    less = evaluate_step(instance(overlap=0), plan(data=8, option="selective"))
    assert less.objective == whole[0].objective + 4 * 0.5


def test_devices_that_share_products_by_hand():
    found = evaluate_step(instance(), plan(tensor=2, data=4, sharding=0))
    # Four blocks of 2.5 s and two messages of six bytes in the server, and the ends.
    assert found.details["computation_s"] == 2 * (4 * 2.5 + 1 + 2)
    assert found.details["tensor_s"] == 2 * 4 * (6 / 8 + 4 * 0.125)


def test_experts_are_sent_across_servers_by_their_own_links():
    sent = {"expert_bytes": 16.0, "messages": 2}
    ways = [way(10, KEPT | sent, expert=4, expert_parameters=6), way(10, KEPT, expert_parameters=24)]
    blocks = [{"name": "experts", "count": 4, "experts": True, "ways": ways}]
    own = instance(blocks=blocks, overlap=0)
    found = evaluate_step(own, plan(data=8, expert=4, sharding=1))
    # Of 16 bytes half leave the server, over 2 bytes a second; 3/4 leave the device, over 8.
    assert found.details["experts_s"] == 4 * (16 / 2 / 2 + 2 * 0.25)
    # Two copies of experts, in servers of their own; eight of the rest.
    scattered = (7 / 8 * 48 * 4 / 4 + 0.25) + (1 / 2 * 24 * 4 / 2 + 0.25)
    gathered = (7 / 8 * 48 * 2 / 4 + 0.25) + (1 / 2 * 24 * 2 / 2 + 0.25)
    assert found.details["copies_s"] == scattered + gathered
    assert found.details["optimizer_s"] == (48 / 8 + 24 / 2) * 0.5


def test_switches_add_up_and_tied_ends_are_held_once():
    tiers = [DATA["tiers"][0], DATA["tiers"][1] | {"collective": "switch"}]
    found = evaluate_step(instance(tiers=tiers, overlap=0), plan(data=8, sharding=0))
    assert found.details["copies_s"] == max(2 * 7 / 8 * 48 * 4 / 8, 48 * 4 / (2 * 2)) + 0.25
    tied = evaluate_step(instance(tied=True), plan(data=8))
    assert tied.details["weights_bytes"] == 44 * 2
    assert evaluate_step(instance(tied=True), plan(data=4, pipeline=2)).details["weights_bytes"] == 24 * 2


def test_short_chunks_are_at_the_ends():
    assert chunk_sizes(10, 4) == [2, 3, 3, 2]
    assert chunk_sizes(11, 4) == [3, 3, 3, 2]
    assert chunk_sizes(9, 4) == [2, 3, 2, 2]
    assert chunk_sizes(8, 4) == [2, 2, 2, 2]
    assert chunk_sizes(5, 1) == [5]


def test_members_of_groups_that_straddle_servers_are_few():
    inside = members(instance(tiers=[DATA["tiers"][0] | {"size": 4}, DATA["tiers"][1]]), plan(data=6))
    assert [each["data"] for each in inside] == [2, 6]


BROKEN = {
    "degrees are positive": [{"tensor": 0}, {"data": -1}, {"micro_batch": 0}],
    "devices suffice": [{"data": 8, "pipeline": 2}],
    "micro-batches are whole": [{"data": 3}],
    "interleaved micro-batches come in rounds": [{"interleaving": 2}, {"pipeline": 2, "interleaving": 2, "data": 8}],
    "interleaving is allowed": [{"pipeline": 1, "interleaving": 9}],
    "every chunk has a block": [{"pipeline": 5}, {"pipeline": 2, "interleaving": 4}],
    "chunks have the recomputed blocks": [{"recomputed": 5}, {"recomputed": -1}],
    "sharding is allowed": [{"sharding": 4}, {"sharding": -1}],
    "the order is allowed": [{"order": ("data", "tensor", "context", "pipeline")}],
    "the expert degree divides a stage's devices": [{"expert": 3}],
    "only experts have an expert degree": [{"data": 2, "expert": 2}],
    "blocks have these degrees": [{"tensor": 4}, {"micro_batch": 2}, {"context": 2}, {"sequence_parallel": True}],
    "options are those of the block": [{"option": "other"}],
    "recomputed blocks are beside the first option": [{"option": "selective", "recomputed": 1}],
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("exact", [False, True])
def test_what_is_broken_is_found(kind, exact):
    for degrees in BROKEN[kind]:
        found = evaluate_step(instance(), plan(**degrees), exact)
        assert not found.feasible
        assert kind in {each.kind for each in found.violations}


def test_memory_is_held():
    found = evaluate_step(instance(memory_bytes=900), plan())
    assert [(each.kind, each.lhs) for each in found.violations] == [("memory suffices", 48 * 18 + 32 + 2 + 3)]


TIERS = DATA["tiers"]
BAD = {
    "a tier missing": ({"tiers": TIERS[:1]}, "a tier that connects them all is missing"),
    "tiers not nested": ({"tiers": [TIERS[0], TIERS[1] | {"size": 9}]}, "no multiple of the 2 of 'server'"),
    "slower inside": ({"tiers": [TIERS[0] | {"bandwidth_bytes_per_s": 0.5}, TIERS[1]]}, "set slower_inside to true"),
    "a part of a micro-batch": (
        {"head": {"name": "head", "ways": [way(1, KEPT, micro_batch=3)]}},
        "none of these divides",
    ),
    "no blocks": ({"blocks": []}, "blocks"),
    "0 blocks": ({"blocks": [DATA["blocks"][0] | {"count": 0}]}, "count"),
    "two embeddings": ({"embedding": DATA["embedding"] | {"count": 2}}, "has one embedding"),
    "two heads": ({"head": DATA["head"] | {"count": 2}}, "the last one a head"),
    "no memory": ({"memory_bytes": 0}, "memory_bytes"),
    "sharding twice": ({"sharding": [1, 1]}, "each once, ascending"),
    "sharding unknown": ({"sharding": [4]}, "list levels 0 to 3"),
    "an order without data": ({"orders": [["tensor", "context", "pipeline", "pipeline"]]}, "each once"),
    "a way twice": ({"head": {"name": "head", "ways": [DATA["head"]["ways"][0]] * 2}}, "two ways"),
    "an option twice": ({"blocks": [{"name": "b", "ways": [way(1, KEPT, KEPT)]}]}, "names must differ"),
    "experts that are none": ({"blocks": [{"name": "b", "ways": [way(1, KEPT, expert=2)]}]}, "has no experts"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_data_are_refused_in_a_line(case):
    changes, told = BAD[case]
    with one_line(InstanceError, told):
        instance(**changes)


def test_the_bound_by_hand():
    # On one device a sample takes 16 s; on two that share it 13, of two devices.
    assert exact_step_bound(instance()) == Fraction(16 * 8, 8)
    assert step_bound(instance()) <= 16
    with one_line(InfeasibleError, "no choice of degrees and micro-batch is offered by all blocks"):
        step_bound(instance(head={"name": "head", "ways": [way(1, KEPT, tensor=3)]}))
    three = {"name": "b", "ways": [way(1, KEPT, tensor=4), way(1, KEPT, tensor=3)]}
    with one_line(InfeasibleError, "the least degrees that all blocks have need 3 devices, and there are 2"):
        step_bound(instance(embedding=three, blocks=[three], head=three, devices=2))


def test_the_bound_counts_devices_of_both_degrees_and_the_faster_of_all_experts():
    both = {"tensor": 2, "context": 2}
    ends = {"ways": [way(1, TABLE, **both)]}
    experts = {"name": "b", "experts": True, "ways": [way(1, KEPT, expert=2, **both), way(1, FULL, **both)]}
    parts = {"embedding": {"name": "e"} | ends, "blocks": [experts], "head": {"name": "h"} | ends}
    assert exact_step_bound(instance(**parts)) == Fraction((1 + 3 + 1) * 4 * 8, 8)
    with one_line(InfeasibleError, "the least degrees that all blocks have need 4 devices, and there are 2"):
        step_bound(instance(**parts, devices=2))


def test_what_is_slower_inside_may_be_meant_so():
    tiers = [TIERS[0] | {"bandwidth_bytes_per_s": 0.5}, TIERS[1]]
    meant = instance(tiers=tiers, slower_inside=True)
    assert StepInstance.from_json(meant.to_json()) == meant
    # Nothing is sent inside a unit of one.
    assert instance(tiers=[tiers[0] | {"size": 1}, TIERS[1]]).tiers[0].size == 1
    assert "slower_inside" not in instance().to_json()


@for_each("seed", seeds(6, 150))
def test_no_plan_is_better_than_the_bound(seed):
    drawn_one = drawn(seed)
    best = best_of_all(drawn_one)
    assert best is None or step_bound(drawn_one) <= best
