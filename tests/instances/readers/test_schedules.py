"""Schedules of collectives: algorithms of MSCCL out and back, those of others, TE-CCL's, and what is refused."""

import json
from fractions import Fraction
from math import lcm
from xml.etree import ElementTree

import pytest
from networks_drawn import several
from refusals import one_line
from volume import for_each

import ddlopt
from ddlopt import instances
from ddlopt.instances import generators
from ddlopt.instances.readers.schedules import read_schedule
from ddlopt.instances.writers import export_plan, import_plan
from ddlopt.models.errors import OptionError, SolutionError, UnknownNameError
from ddlopt.models.topology.collective.bounds import exact_collective_bound
from ddlopt.models.topology.collective.instance import shares_of_links

COLLECTIVES = ("all-gather", "reduce-scatter", "all-reduce", "broadcast", "all-to-all")


def made(network, collective, **options):
    return generators.generate("topology", "collective", network=network, collective=collective, **options)


def step(kind, place, target=None, buffer="o", count=1, waits=(-1, -1)):
    target = place if target is None else target
    return (
        f'<step s="0" type="{kind}" srcbuf="{buffer}" srcoff="{place}" dstbuf="{buffer}" dstoff="{target}" '
        f'cnt="{count}" depid="{waits[0]}" deps="{waits[1]}" hasdep="0"/>'
    )


def algorithm(coll, chunks, blocks, in_place=1):
    """Blocks are (gpu, send, receive, steps), with numbers by gpu."""
    gpus = sorted({gpu for gpu, *_ in blocks})
    told = f'nchunksperloop="{chunks}" ngpus="{len(gpus)}" coll="{coll}" inplace="{in_place}"'
    text = f'<algo name="x" nchannels="1" {told}>'
    for gpu in gpus:
        text += f'<gpu id="{gpu}" i_chunks="{chunks}" o_chunks="{chunks}" s_chunks="0">'
        for number, (_, send, receive, steps) in enumerate(each for each in blocks if each[0] == gpu):
            text += f'<tb id="{number}" send="{send}" recv="{receive}" chan="0">{"".join(steps)}</tb>'
        text += "</gpu>"
    return text + "</algo>"


def ring_of_three(coll="allreduce"):
    """An all-reduce in place as MSCCL's example has it: two rounds that add up, two that copy; one block a gpu."""
    blocks = []
    for gpu in range(3):
        a, b, c = gpu, (gpu - 1) % 3, (gpu - 2) % 3
        steps = [step("s", a), step("rrcs", b), step("rrcs", c), step("rcs", a), step("r", b)]
        blocks.append((gpu, (gpu + 1) % 3, (gpu - 1) % 3, steps))
    return algorithm(coll, 3, blocks)


def read(tmp_path, text, instance, source_format="msccl"):
    file = tmp_path / "schedule"
    file.write_text(text if isinstance(text, str) else json.dumps(text))
    return read_schedule(file, source_format, instance)


def objective(instance, plan):
    found = ddlopt.check(instance, plan, exact=True)
    assert found.feasible, found.violations[0]
    return found.objective


def chunks(instance, plan):
    """Into how many parts of the same size the bytes have to be cut."""
    parts = 1 if instance.collective in ("all-reduce", "broadcast") else instance.accelerators
    return parts * lcm(*((Fraction(tree.share) * parts).denominator for tree in plan.trees))


@for_each("seed", range(8))
def test_what_is_written_is_read_back(tmp_path, seed):
    """By the stamp unchanged, and by its steps as a plan that loads links as much."""
    for collective in COLLECTIVES:
        instance = several(seed + 1, collective, most=4)[seed]
        for method in (None, "ring-in-order"):
            if method and collective == "all-to-all":
                continue
            plan = ddlopt.solve(instance, method).solution
            if plan is None:
                continue  # a broadcast that nothing leads back from has no ring
            if chunks(instance, plan) > 2**16:
                with one_line(OptionError, "chunks"):
                    export_plan(instance, plan, "msccl")
                continue
            text = export_plan(instance, plan, "msccl")
            ElementTree.fromstring(text)
            file = tmp_path / "plan.xml"
            file.write_text(text)
            assert import_plan(instance, file) == plan
            again = read_schedule(file, "msccl", instance).plan
            assert objective(instance, again) >= exact_collective_bound(instance)
            if not instance.switches:  # what goes over which switch is not in the file
                assert shares_of_links(again.trees) == shares_of_links(plan.trees)


def test_names_with_dashes_stand_in_comments(tmp_path):
    instance = made("ring", "all-gather", accelerators=3).model_copy(update={"name": "a--b---c-->"})
    plan = ddlopt.solve(instance).solution
    file = tmp_path / "plan.xml"
    file.write_text(export_plan(instance, plan, "msccl"))
    ElementTree.fromstring(file.read_text())
    assert import_plan(instance, file) == plan
    file.write_text(file.read_text().replace('srcoff="0"', 'srcoff="1"', 1))
    with one_line(SolutionError, "says"):
        import_plan(instance, file)


def test_bundled_plans_are_read_back(tmp_path):
    for name in ("all-reduce-path-4", "broadcast-unequal-n12-d3", "all-gather-kautz-2-3"):
        instance, plan = ddlopt.load(f"topology/{name}"), instances.best(f"topology/{name}")
        found = read(tmp_path, export_plan(instance, plan, "msccl"), instance)
        assert objective(instance, found.plan) == objective(instance, plan)


def test_a_ring_that_adds_up_in_place(tmp_path):
    instance = made("complete", "all-reduce", accelerators=3, gigabytes=3)
    plan = read(tmp_path, ring_of_three(), instance).plan
    assert objective(instance, plan) == 4
    assert sorted(tree.root for tree in plan.trees) == [0, 1, 2]


def test_hops_without_a_link_go_over_switches_or_not_at_all(tmp_path):
    boxes = made("dgx-a100", "all-reduce").model_copy(update={"accelerators": 3, "switches": 6})
    assert read(tmp_path, ring_of_three(), boxes).plan.trees[0].spread[0][1] == 8
    with one_line(SolutionError, "no link and no switches join them in 'all-reduce-ring-3'"):
        read(tmp_path, mirrored(), made("ring", "all-reduce", accelerators=3))


def mirrored():
    """The ring the other way round."""
    blocks = []
    for gpu in range(3):
        a, b, c = gpu, (gpu + 1) % 3, (gpu + 2) % 3
        steps = [step("s", a), step("rrcs", b), step("rrcs", c), step("rcs", a), step("r", b)]
        blocks.append((gpu, (gpu - 1) % 3, (gpu + 1) % 3, steps))
    return algorithm("allreduce", 3, blocks)


PAIR = made("complete", "all-gather", accelerators=2)
BOTH = made("complete", "all-reduce", accelerators=2)


def gather(*changes):
    blocks = [
        [0, 1, -1, [step("s", 0)]],
        [0, -1, 1, [step("r", 1)]],
        [1, 0, -1, [step("s", 1)]],
        [1, -1, 0, [step("r", 0)]],
    ]
    for place, steps in changes:
        blocks[place][3] = steps
    return algorithm("allgather", 2, blocks)


def reduce(*changes):
    """Both send what they have to 0, and get the sum."""
    blocks = [
        [0, 1, -1, [step("s", 0, waits=(1, 0))]], [0, -1, 1, [step("rrc", 0)]],
        [1, 0, -1, [step("s", 0)]], [1, -1, 0, [step("r", 0)]],
    ]  # fmt: skip
    for place, steps in changes:
        blocks[place][3] = steps
    return algorithm("allreduce", 1, blocks)


@pytest.mark.parametrize(
    ("instance", "text", "words"),
    [
        (PAIR, gather((1, [step("r", 5)])), "chunk (1, 0) is lost: at the end o[1] of gpu 0 has nothing"),
        (PAIR, gather((3, [step("r", 1)])), "chunk (0, 0) is lost: at the end o[0] of gpu 1 has nothing"),
        (PAIR, gather((3, [step("r", 0), step("cpy", 1, 0)])), "o[0] of gpu 1 has chunk (1, 0)"),
        (PAIR, gather((0, [])), "gpu 1, tb 1, step 0 waits for ever"),
        (PAIR, gather((0, [step("s", 1)])), "takes o[1], where nothing is yet"),
        (PAIR, gather((0, [step("s", 0, waits=(7, 0))])), "waits for tb 7, and there is none"),
        (PAIR, gather((0, [step("s", 0, waits=(1, 3))])), "waits for ever"),
        (PAIR, gather((1, [step("r", 1, count=2)])), "expects 2 chunks, and 1 come"),
        (PAIR, gather((1, [step("rx", 1)])), "has type 'rx'"),
        (PAIR, gather((1, [step("r", -7)])), "srcoff of a <step> is '-7'"),
        (PAIR, gather((1, [step("r", 1, buffer="q")])), "has srcbuf 'q'"),
        (PAIR, gather((1, [step("r", 1, count=10**7)])), "cnt of a <step>"),
        (PAIR, gather().replace("allgather", "alltoall"), 'needs an <algo> of "allgather"'),
        (PAIR, gather().replace('ngpus="2"', 'ngpus="3"'), "has 2 gpus, but 'all-gather-complete-2' has 2"),
        (PAIR, gather().replace('nchunksperloop="2"', 'nchunksperloop="3"'), "multiple of 2 gpus"),
        (PAIR, gather()[:-3], "cannot be read as XML"),
        (PAIR, "{}", "cannot be read as XML"),
        (BOTH, reduce((0, [step("s", 0)])), "what gpu 1 has of chunk (0,) is lost"),
        (BOTH, reduce((1, [step("r", 0)])), "what gpu 0 has of chunk (0,) is lost"),
        (BOTH, reduce((3, [step("rrc", 0)])), "adds up what gpu 1 has of chunk (0,) twice"),
    ],
)
def test_what_loses_bytes_is_told_in_one_line(tmp_path, instance, text, words):
    with one_line(SolutionError, words):
        read(tmp_path, text, instance)


def doubling(*missing):
    """Recursive doubling of four: each adds up what its neighbour has, then what that of the other pair has.

    Blocks of a gpu send and add, and again; each waits for the one before it. ``missing``: (gpu, distance) where what
    comes is stored and not added.
    """
    blocks = []
    for gpu in range(4):
        for far, first in ((1, (-1, -1)), (2, (1, 0))):
            adds = "r" if (gpu, far) in missing else "rrc"
            blocks.append((gpu, gpu ^ far, -1, [step("s", 0, waits=first)]))
            blocks.append((gpu, -1, gpu ^ far, [step(adds, 0, waits=(2 * far - 2, 0))]))
    return algorithm("allreduce", 1, blocks)


def test_sums_at_several_accelerators_are_judged_by_what_is_sent(call, refused, tmp_path):
    """Each of four sends all bytes over both of its links: a second, where 3/4 would do; what is lost is seen."""
    instance = made("hypercube", "all-reduce", accelerators=4)
    found = read(tmp_path, doubling(), instance)
    assert found.plan is None
    assert found.details == {"sends_busy_s": 1.0}
    assert "that is no tree with one root" in found.why
    network, file = tmp_path / "network.json", tmp_path / "doubling.xml"
    network.write_text(instance.to_json())
    file.write_text(doubling())
    code, out, err = call("import-plan", network, file, "--from", "msccl")
    assert code == 0
    assert "no plan takes less than 750 ms" in out
    assert "sends_busy_s: 1 s, 25.00 % from the bound" in out
    assert "that is no tree with one root" in out + err
    assert "that is no tree" in refused("import-plan", network, file, "--from", "msccl", "-o", tmp_path / "plan.json")
    with one_line(SolutionError, "that is no tree with one root"):
        ddlopt.import_plan(instance, file, "msccl")
    with one_line(SolutionError, "of chunk (0,) is lost"):
        read(tmp_path, doubling((3, 2)), instance)


@pytest.mark.parametrize("network", ["torus", "mi250", "dgx-a100"])
def test_sums_of_many_roots_are_written_and_read_back(tmp_path, network):
    """Each chunk has one root, and each accelerator is one: links carry as much, and shares by root are the same."""
    instance = made(network, "all-reduce", dimensions="3x3")
    plan = ddlopt.solve(instance, "forest").solution
    again = read(tmp_path, export_plan(instance, plan, "msccl"), instance).plan
    assert len({tree.root for tree in plan.trees}) == instance.accelerators
    assert shares_by_root(again) == shares_by_root(plan)
    assert objective(instance, again) == objective(instance, plan) == exact_collective_bound(instance)


def shares_by_root(plan):
    found = {}
    for tree in plan.trees:
        found[tree.root] = found.get(tree.root, 0) + Fraction(tree.share)
    return found


def hops(*told, finish=1.5):
    demands = {f"Demand at {t} for chunk {c} from {s} met by epoch 3": ways for t, c, s, ways in told}
    return {"4-Collective_Finish_Time": finish, "8-Chunk paths": demands}


LINE = made("path", "all-gather", accelerators=3, gigabytes=3)
ALONG = (
    (1, 0, 0, ["0->1 in epoch 0"]), (2, 0, 0, ["0->1 in epoch 0", "1->2 in epoch 1"]),
    (0, 0, 1, ["1->0 in epoch 0"]), (2, 0, 1, ["1->2 in epoch 0"]),
    (0, 0, 2, ["2->1 in epoch 0", "1->0 in epoch 2"]), (1, 0, 2, ["2->1 in epoch 0"]),
)  # fmt: skip


def test_a_schedule_of_te_ccl(tmp_path):
    found = read(tmp_path, hops(*ALONG), LINE, "te-ccl")
    assert objective(LINE, found.plan) == 2
    assert found.details == {"published_s": 1.5}
    assert found.instance is LINE


def test_an_accelerator_that_only_forwards_is_a_switch_there(tmp_path):
    """As accelerator 0 of TE-CCL's two NDv2: of three bytes two are left."""
    star = made("star", "all-gather", accelerators=3, gigabytes=3)
    told = ((2, 0, 1, ["1->2 in epoch 0 via switches 0"]), (1, 0, 2, ["2->1 in epoch 0 via switches 0"]))
    found = read(tmp_path, hops(*told), star, "te-ccl")
    assert (found.instance.accelerators, found.instance.switches) == (2, 1)
    assert found.instance.collective_bytes == 2e9
    assert objective(found.instance, found.plan) == 1
    assert {tree.spread for tree in found.plan.trees} == {((0, 2, 1),), ((1, 2, 0),)}


def test_parts_of_an_all_to_all(tmp_path):
    """Volumes are shares of a pair's bytes: two thirds directly, a third around."""
    instance = made("complete", "all-to-all", accelerators=3, gigabytes=3)
    direct = [(t, s, s, [[[0, f"{s}->{t} with volume 1.0 in epoch 0"]]]) for s in range(3) for t in range(3) if s != t]
    direct[0] = (1, 0, 0, [
        [[0, "0->1 with volume 0.5 in epoch 0"]],
        [[0, "0->2 with volume 0.25 in epoch 0"], [1, "2->1 with volume 0.25 in epoch 1"]],
    ])  # fmt: skip
    plan = read(tmp_path, hops(*direct), instance, "te-ccl").plan
    shares = shares_of_links(plan.trees)
    assert shares[0, 1] == Fraction(2, 9)
    assert shares[0, 2] == shares[2, 1] == Fraction(4, 9)
    assert objective(instance, plan) == Fraction(4, 3)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "is no schedule of TE-CCL"),
        ({"8-Chunk paths": {}}, "is no schedule of TE-CCL"),
        (hops((1, 0, 0, [])), "a demand has no hops"),
        (hops((1, 0, 0, ["0=>1"])), "hops are not one after the other"),
        (hops((1, 0, 0, ["0->1 in epoch 0", "2->1 in epoch 1"])), "hops are not one after the other"),
        ({"8-Chunk paths": {"Demand": ["0->1 in epoch 0"]}}, "cannot read the demand 'Demand'"),
        (hops(*ALONG[1:]), "chunk 0 of accelerator 0 never gets to 1"),
        (hops(*ALONG, (9, 0, 0, ["0->9 in epoch 0"])), "is for 4 accelerators"),
        (hops(*ALONG[:1], (2, 0, 0, ["0->2 in epoch 0"]), *ALONG[2:]), "no link and no switches join them"),
    ],
)
def test_what_is_no_schedule_of_te_ccl(tmp_path, data, words):
    with one_line(SolutionError, words):
        read(tmp_path, data, LINE, "te-ccl")


def test_other_problems_and_formats_are_refused(tmp_path):
    with one_line(UnknownNameError, "there are: msccl, te-ccl"):
        read(tmp_path, "", PAIR, "sccl")
    with one_line(SolutionError, "a schedule is for a collective"):
        read(tmp_path, "", ddlopt.load("topology/tiny-n4-d2"))
    with one_line(SolutionError, "TE-CCL has all-gather and all-to-all"):
        read(tmp_path, hops(*ALONG), made("path", "all-reduce", accelerators=3), "te-ccl")


def test_the_command_says_how_far_from_the_bound(call, refused, tmp_path):
    network, file = tmp_path / "network.json", tmp_path / "schedule.json"
    network.write_text(LINE.to_json())
    file.write_text(json.dumps(hops(*ALONG, finish=2.5)))
    code, out, _ = call("import-plan", network, file, "--from", "te-ccl", "-o", tmp_path / "plan.json")
    assert code == 0
    assert "no plan takes less than 2 s" in out
    assert "published_s: 2.5 s, 20.00 % from the bound" in out
    assert ddlopt.check(LINE, tmp_path / "plan.json").objective == 2
    network.write_text(PAIR.to_json())
    file.write_text(gather((1, [step("r", 5)])))
    assert "chunk (1, 0) is lost" in refused("import-plan", network, file, "--from", "msccl")
