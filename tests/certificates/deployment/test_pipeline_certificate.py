"""Proofs for pipelines: what is just below the best of all plans is accepted, and nothing above it."""

import itertools
import json
import random
from fractions import Fraction

import pytest
from pipeline_cases import drawn, plans, tight
from refusals import one_line
from shared_data import shared_data
from volume import for_each, seeds, slow

import ddlopt
from ddlopt.certificates.deployment.pipeline import PipelineCertificate
from ddlopt.certificates.deployment.pipeline.kernels import _cut, _is_slow, _overfull, _put, room_for
from ddlopt.certificates.deployment.pipeline.tables import MOST_IDEALS, ideals_of, tables_of
from ddlopt.cli import run
from ddlopt.instances.generators.deployment import generate
from ddlopt.instances.readers import convert
from ddlopt.models.deployment import PipelineInstance, PipelinePlan, PlanStage
from ddlopt.models.deployment.pipeline.evaluate import evaluate_pipeline
from ddlopt.models.errors import NotApplicableError, RefutedError, SolutionError
from ddlopt.solvers.deployment.pipeline.prove import prove

NEAR = Fraction(1, 10**7)
"""The claim is so near the optimum as a part of it."""


def never():
    return False


def check(instance, claim):
    """How many stages were asked about."""
    return PipelineCertificate(instance.name, instance.digest, Fraction(claim)).check(instance, never)


def check_around(instance, best):
    """What is below the optimum is proven; what is above it is not, nor is the optimum by more than rounding."""
    if best is None:
        check(instance, 10**9)
        return
    check(instance, best * (1 - NEAR))
    for more in (Fraction(1, 10**12), Fraction(1, 100), 9):
        with one_line(RefutedError, "may take less than the claim of"):
            check(instance, best * (1 + more) + Fraction(1, 10**30))


def best_of_all(instance):
    """The best plan that passes the check as it is, in rational numbers; None if none does."""
    found = (plan for plan in plans(instance) if evaluate_pipeline(instance, plan).feasible)
    return min((evaluate_pipeline(instance, plan, exact=True).objective for plan in found), default=None)


@for_each("seed", seeds(20, 300))
def test_the_optimum_is_proven_and_nothing_above_it(seed):
    instance = drawn(seed, most=3 if seed % 3 else 4)
    check_around(instance, best_of_all(instance))


@for_each("seed", seeds(20, 300))
def test_memory_that_is_reached_to_the_last_byte(seed):
    instance = tight(seed)
    check_around(instance, best_of_all(instance))


def one_stage(options, memory_bytes):
    """Layers without edges on one device; ``options`` are pairs of time and memory."""
    menus = [
        [{"name": str(n), "time_s": time_s, "fixed_bytes": size} for n, (time_s, size) in enumerate(own)]
        for own in options
    ]
    layers = [{"name": str(n), "menus": [{"tensor": 1, "options": menu}]} for n, menu in enumerate(menus)]
    data = {
        "name": "one",
        "layers": layers,
        "edges": [{"maker": n, "user": n + 1, "size_bytes": 0} for n in range(len(layers) - 1)],
    }
    return PipelineInstance.from_data(
        data | {"devices": 1, "memory_bytes": memory_bytes, "bandwidth_bytes_per_s": 1, "micro_batches": 1}
    )


@for_each("seed", seeds(30, 600))
def test_options_of_a_stage(seed):
    """Whole knapsacks, in which what may be mixed takes less than what may be chosen."""
    draw = random.Random(seed)
    most = draw.choice((3, 30, 1000))

    def option():
        size = draw.randint(0, most)
        # Where time and memory of all options add up to about the same, it matters which are chosen.
        return (draw.randint(0, most) if seed % 3 == 0 else most - size + draw.randint(0, 1 + seed % 3), size)

    options = [[option() for _ in range(draw.randint(1, 3))] for _ in range(draw.randint(1, 7))]
    least, largest = (sum(kind(size for _, size in own) for own in options) for kind in (min, max))
    memory = max(1, draw.randint(least - 1, largest + 1))
    found = [
        sum(time for time, _ in chosen)
        for chosen in itertools.product(*options)
        if sum(size for _, size in chosen) <= memory
    ]
    if min(found, default=1) == 0:
        with one_line(RefutedError, "may take less"):
            check(one_stage(options, memory), Fraction(1, 10**6))
    else:
        instance, best = one_stage(options, memory), Fraction(min(found)) if found else None
        check_around(instance, best)
        for claim, slow in (
            ((best * (1 - NEAR), True), (best * (1 + NEAR), False)) if found else ((Fraction(9**9), True),)
        ):
            assert is_slow(tables_of(instance, claim), 0, len(options), 0, 0, 1) is slow


@for_each("seed", seeds(12, 150))
def test_stages_one_by_one(seed):
    """Every stage is slow if the claim is just below what its best options take, and not if it is just above."""
    instance, draw = drawn(seed, most=4, options=3), random.Random(seed)
    ideals = ideals_of(instance)
    pairs = [(one, other) for one, first in enumerate(ideals) for other, then in enumerate(ideals)
             if first != then and not first & ~then]  # fmt: skip
    for _ in range(12 * bool(instance.tensors)):
        ahead, behind = draw.choice(pairs)
        tensor, replicas, flying = draw.choice(instance.tensors), draw.choice(instance.replicas), draw.randint(1, 4)
        layers = [place for place in range(instance.size) if (ideals[behind] & ~ideals[ahead]) >> place & 1]
        least = least_time(instance, layers, tensor, replicas, flying)
        if all(instance.layers[layer].menu(tensor) for layer in layers) and least != 0:
            for more in (-NEAR, NEAR) if least is not None else (-NEAR,):
                claim = Fraction(10**9) if least is None else least * (1 + more)
                tables = tables_of(instance, claim)
                degree, number = instance.tensors.index(tensor), instance.replicas.index(replicas)
                assert is_slow(tables, ahead, behind, degree, number, flying) is (more < 0)
                menus = [instance.layers[layer].menu(tensor) for layer in layers]
                lean = sum(min(each.kept_bytes * flying + each.fixed_bytes for each in menu) for menu in menus)
                if flying <= tables.most:
                    assert _overfull(tables, ahead, behind, degree, flying) == (lean > instance.memory_bytes)


@for_each("seed", seeds(12, 150))
def test_devices_that_are_left(seed):
    """Stages of d t devices compute for less than the claim times d t, whatever they are."""
    instance, claim = drawn(seed, most=4), Fraction(10007, 9973)
    for ideal, left in zip(ideals_of(instance), tables_of(instance, claim).left, strict=True):
        inside = [layer for place, layer in enumerate(instance.layers) if ideal >> place & 1]
        pairs = [[(menu.tensor, option) for menu in layer.menus for option in menu.options] for layer in inside]
        work = sum(min(tensor * Fraction(option.time_s) for tensor, option in own) for own in pairs)
        assert left == max(0, instance.devices - (int(work / claim) + 1 if inside else 0))


def is_slow(tables, ahead, behind, degree, number, flying):
    """What is asked of a stage, whatever stands where the kernels calculate."""
    room = room_for(tables)
    for each in room:
        each[...] = 2**38 + 7
    size = _put(tables, room, ahead, behind)
    return _is_slow(tables, room, size, _cut(tables, room, size, degree), degree, number, flying)


def least_time(instance, layers, tensor, replicas, flying):
    """Over all choices of options that fit; None if none does."""
    times = []
    for chosen in itertools.product(*(instance.layers[layer].menu(tensor) for layer in layers)):
        moved = 0
        for layer, option in zip(layers, chosen, strict=True):
            for edge in instance.edges:
                if edge.user == layer and edge.maker not in layers:
                    moved += edge.size_bytes + dict(option.gathered).get(edge.maker, 0)
                if edge.maker == layer and edge.user not in layers:
                    moved += edge.size_bytes + dict(option.scattered).get(edge.user, 0)
        rate = Fraction(instance.bandwidth_bytes_per_s)
        reduced = 4 * (replicas - 1) * Fraction(sum(option.weight_bytes for option in chosen)) / instance.micro_batches
        work = sum(Fraction(option.time_s) for option in chosen)
        if sum(option.kept_bytes * flying + option.fixed_bytes for option in chosen) <= instance.memory_bytes:
            times.append((work + (2 * Fraction(moved) + reduced) / rate) / replicas)
    return min(times, default=None)


def test_more_layers_than_bits():
    """Ideals are words of 64 bits."""
    instance = generate("pipeline", 1, layers=70, devices=4, micro_batches=4, memory=1.2, shape="chain", alike=False)
    result = ddlopt.solve(instance)
    check_around(instance, Fraction(ddlopt.check(instance, result.solution, exact=True).objective))


def test_a_stage_with_too_many_choices_counts_as_possible():
    """Of weights that are multiples of three, none fills what is between two of them."""

    def powers(count):
        half = 3 * 2 ** (count - 1)
        return one_stage([[(3 * 2**n, 0), (0, 3 * 2**n)] for n in range(count)], half + 1), 3 * (2**count - 1) - half

    instance, best = powers(10)
    check(instance, best * (1 - NEAR))
    with one_line(RefutedError, "may take less"):
        check(instance, best + Fraction(1, 2))
    instance, best = powers(17)
    with one_line(RefutedError, "may take less"):
        check(instance, best * (1 - NEAR))


@for_each("seed", seeds(2, 24))
def test_the_search_and_the_checker_agree(seed):
    shape = ("chain", "branches", "random")[seed % 3]
    size = {"layers": 10, "devices": 8, "micro_batches": 16, "memory": 1.2, "shape": shape, "alike": seed % 2 == 0}
    instance = generate("pipeline", seed, **size)
    result = ddlopt.solve(instance)
    check_around(instance, Fraction(ddlopt.check(instance, result.solution, exact=True).objective))


@pytest.mark.parametrize("name", ["branches-l12-k16", "chain-l24-k32", "chain-l24-k32-tight", "random-l8-k8"])
def test_optima_of_the_library(name):
    instance = ddlopt.load(f"deployment/pipeline-{name}")
    best = Fraction(ddlopt.check(instance, ddlopt.instances.best(f"deployment/{instance.name}"), exact=True).objective)
    check(instance, best * (1 - NEAR))
    with one_line(RefutedError, "may take less"):
        check(instance, best * (1 + NEAR))


@pytest.mark.parametrize(
    ("file", "samples", "devices", "memory_gib", "sample_s"),
    [
        ("bert32a100", 1920, 32, 8, 0.0415154504417),
        ("bert32a100", 1920, 512, 1, 0.008780040358146),
        ("resnet", None, 128, 1, 19.856328551013),
        slow("gnmt", None, 32, 0.8, 17.504116662681),
    ],
)
def test_inputs_of_piper(file, samples, devices, memory_gib, sample_s):
    path = shared_data(f"piper/{file}.json")
    options = {"devices": devices, "memory_gib": memory_gib, "bandwidth_gib_per_s": 25.0}
    instance = convert(path, "piper", micro_batches=samples, **options)
    check(instance, Fraction(sample_s) * (1 - NEAR))
    with one_line(RefutedError, "may take less"):
        check(instance, Fraction(sample_s) * (1 + NEAR))


def changed(instance, **values):
    return PipelineInstance.from_data(instance.model_dump(mode="json") | values)


def test_what_is_beyond_whole_numbers_is_refused_or_holds():
    instance = drawn(7)
    many = changed(instance, devices=10**5, micro_batches=10**5)
    with one_line(NotApplicableError, "overflow"):
        check(many, 1)
    for sizes in ({"memory_bytes": 1e-99}, {"memory_bytes": 1e99}, {"bandwidth_bytes_per_s": 1e-99}):
        odd = changed(instance, **sizes)
        check_around(odd, best_of_all(odd))


def test_the_unit_of_time_leaves_room_for_sums():
    chain = one_stage([[(1, 1)]] * 300, 10)
    tables = tables_of(changed(chain, devices=30_000, micro_batches=30_000), Fraction(1, 10**9))
    terms = 2 * chain.size + 4 * len(chain.edges)
    assert 2**58 <= terms * tables.most * tables.goal < 2**60
    assert tables_of(chain, Fraction(1)).goal == 2**36
    assert tables.time.max() == tables.most * tables.goal


def test_too_many_ideals_are_refused():
    layers = [{"name": str(n), "menus": [{"tensor": 1, "options": [{"name": "a", "time_s": 1}]}]} for n in range(15)]
    data = {"name": "wide", "layers": layers, "devices": 2, "memory_bytes": 1, "bandwidth_bytes_per_s": 1}
    wide = PipelineInstance.from_data(data | {"micro_batches": 1})
    assert 2**14 < MOST_IDEALS < 2**15
    with one_line(NotApplicableError, f"more than {MOST_IDEALS} ideals"):
        check(wide, 1)
    stage = PlanStage(layers=tuple(range(15)), replicas=1, tensor=1, options=("a",) * 15)
    assert prove(wide, PipelinePlan(instance="wide", stages=(stage,)), Fraction(15), never) is None
    assert len(ideals_of(changed(wide, layers=layers[:14]))) == 2**14


def test_bounds_exclude_something():
    """A slip that makes a rule useless would leave all proofs right, and slow."""
    name = "deployment/pipeline-chain-l24-k32"
    instance = ddlopt.load(name)
    best = Fraction(ddlopt.check(instance, ddlopt.instances.best(name), exact=True).objective)
    assert check(instance, best * Fraction(9999, 10000)) < 1500
    tables = tables_of(instance, best)
    assert tables.left[-1] < tables.left[0] == instance.devices


def test_who_writes_it_takes_what_can_be_proven():
    instance = drawn(21)
    known = [(found.objective, number) for number, plan in enumerate(plans(instance))
             if (found := evaluate_pipeline(instance, plan, exact=True)).feasible]  # fmt: skip
    every, (best, first), (worst, last) = list(plans(instance)), min(known), max(known)
    assert worst > best * 2
    assert prove(instance, every[first], best * (1 - NEAR), never).claim == best * (1 - NEAR)
    assert best > prove(instance, every[first], best, never).claim > best * (1 - NEAR)
    assert best > prove(instance, every[first], best * 2, never).claim > best * (1 - NEAR)
    assert best > prove(instance, every[last], worst, never).claim > best * Fraction(99, 100)
    assert prove(instance, every[first], best, lambda: True) is None


def test_from_the_command_line(tmp_path, capsys):
    name = "deployment/pipeline-random-l8-k8"
    proof, plan = tmp_path / "proof.json", tmp_path / "plan.json"
    assert run(["certify", name, "--out", str(proof)]) == 0
    assert run(["solve", name, "--out", str(plan)]) == 0
    capsys.readouterr()
    assert run(["check", name, str(plan), "--certificate", str(proof)]) == 0
    assert "all sequences of stages" in capsys.readouterr().out
    data = json.loads(proof.read_text())
    proof.write_text(json.dumps(data | {"claim": str(Fraction(data["claim"]) * Fraction(1001, 1000))}))
    assert run(["check", name, str(plan), "--certificate", str(proof)]) != 0


def test_files_that_are_none():
    instance = ddlopt.load("deployment/pipeline-tiny-l4-k4")
    data = json.loads(PipelineCertificate(instance.name, instance.digest, Fraction(1, 1000)).text)
    PipelineCertificate.from_data(data).check(instance, never)
    for change in (
        {"order": []},
        {"claim": 0.001},
        {"claim": "1e9"},
        {"version": 2},
        {"format": "ddlopt step certificate"},
    ):
        with pytest.raises(SolutionError):
            PipelineCertificate.from_data(data | change)
    for missing in data:
        with pytest.raises(SolutionError):
            PipelineCertificate.from_data({name: each for name, each in data.items() if name != missing})
