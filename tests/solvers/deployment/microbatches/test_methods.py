"""Methods for orders of micro-batches against all orders, against each other, and against the papers' figures."""

import random

import pytest
from microbatch_cases import best_of_all, drawn
from shared_data import shared_data
from volume import seeds, slow, some

import ddlopt
from ddlopt.instances.generators.deployment import generate
from ddlopt.instances.readers import convert
from ddlopt.models.deployment.microbatches.evaluate import evaluate_order
from ddlopt.models.deployment.microbatches.formulations.counted_starts import CountedStarts
from ddlopt.models.deployment.microbatches.ticks import exact_ticks, order_of
from ddlopt.models.reading import parsed, read_text
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.deployment.microbatches.list_scheduling import rules, schedule
from ddlopt.solvers.heuristic import Asked

EXACT = Limits(gap=0.0)


@pytest.mark.parametrize("seed", seeds(7, 200))
def test_the_optimum_of_small_ones(seed):
    instance = drawn(seed)
    best = float(best_of_all(instance))
    found = ddlopt.solve(instance, time_limit=60)
    assert found.checked
    assert found.bound <= best <= found.objective
    # Passes without any time are placed by the program in an order that may not fit.
    if all(c.forward_s and c.backward_s and c.weights_s != 0 for c in instance.chunks):
        assert found.objective == pytest.approx(best, rel=1e-9)
        assert found.status is Status.OPTIMAL


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("seed", seeds(3, 80))
def test_the_program_has_the_same_optimum(seed, zeros):
    instance = drawn(seed, zeros=zeros)
    if CountedStarts().refuses(instance) is not None:
        pytest.skip("a span that may be a fraction of a tick, or memory that is taken and given back in no time")
    found = method("counted-starts", "deployment").solve(instance, Limits(gap=1e-9))
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(float(best_of_all(instance)), rel=1e-6)


@pytest.mark.parametrize("seed", [*range(8), 58, *(slow(seed) for seed in range(8, 150) if seed != 58)])
def test_the_program_of_pairs_has_the_same_optimum(seed):
    """With transfers, several chains, and spans that are fractions of a tick as well.

    In 58 two passes that do not wait for each other must both come late, so that which is first is known.
    """
    instance = drawn(seed, zeros=False)
    found = method("ordered-passes", "deployment").solve(instance, Limits(gap=1e-9))
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(float(best_of_all(instance)), rel=1e-6)


TABLE = [(2, 3, 10, 9, 10), (3, 4, 14, 13, 14), (3, 6, 20, 18, 20), (4, 6, 21, 19, 21)]
"""Devices, micro-batches; span in memory p, and in 2 p - 1; makespan in either. Unit times."""
ROWS = [
    (p, n, memory, objective, value)
    for p, n, tight, roomy, makespan in TABLE
    for memory, objective, value in (
        (p, "span", tight), (2 * p - 1, "span", roomy), (p, "makespan", makespan), (2 * p - 1, "makespan", makespan)
    )
]  # fmt: skip
EXACT_METHODS = ("exact", "counted-starts", "ordered-passes")


@pytest.mark.parametrize("name", EXACT_METHODS)
@pytest.mark.parametrize(("p", "n", "memory", "objective", "value"), some(ROWS, 8))
def test_proven_values_by_every_exact_method(name, p, n, memory, objective, value):
    instance = generate(
        "microbatches", 0, stages=p, micro_batches=n, memory=float(memory), objective=objective
    )  # fmt: skip
    found = method(name, "deployment").solve(instance, EXACT)
    assert found.checked
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(value, rel=1e-9)


def orders(name, **options):
    return method(name, "deployment").solve(generate("microbatches", 0, **options), Limits()).solution.orders


def test_orders_by_hand():
    small = {"stages": 2, "micro_batches": 3, "memory": 3.0}
    assert orders("1f1b", **small)[0] == ("0F0", "0F1", "0I0", "0W0", "0F2", "0I1", "0W1", "0I2", "0W2")
    assert orders("gpipe", **small)[1] == ("1F0", "1F1", "1F2", "1I0", "1W0", "1I1", "1W1", "1I2", "1W2")
    assert orders("zb-h1", **small)[1] == ("1F0", "1I0", "1F1", "1I1", "1W0", "1F2", "1I2", "1W1", "1W2")
    assert orders("zb-h2", **small)[0] == ("0F0", "0F1", "0F2", "0I0", "0W0", "0I1", "0W1", "0I2", "0W2")
    around = orders("interleaved-1f1b", stages=2, micro_batches=2, chunks=2, fused=True)
    assert around[0] == ("0F0", "0F1", "2F0", "2F1", "2B0", "2B1", "0B0", "0B1")
    assert around[1] == ("1F0", "1F1", "3F0", "3B0", "3F1", "3B1", "1B0", "1B1")


VALUES = [
    ("1f1b", {"stages": 4, "micro_batches": 6, "fused": True}, 3 * (6 + 4 - 1)),
    ("gpipe", {"stages": 4, "micro_batches": 6, "memory": 6.0}, 3 * 6 + 2 * 3),
    ("zb-h1", {"stages": 4, "micro_batches": 6}, 3 * 6 + 4 - 1),
    ("zb-h2", {"stages": 4, "micro_batches": 8, "memory": 7.0}, 3 * 8),
    ("interleaved-1f1b", {"stages": 2, "micro_batches": 4, "chunks": 2, "memory": 5.0}, 26),
    ("zb-v", {"stages": 2, "micro_batches": 4, "chunks": 2, "shape": "v"}, 6 * 4),
    ("zb-v", {"stages": 3, "micro_batches": 5, "chunks": 2, "shape": "v"}, 6 * 5),
    ("zb-v", {"stages": 8, "micro_batches": 16, "chunks": 2, "shape": "v"}, 6 * 16),
]


@pytest.mark.parametrize(("name", "options", "value"), VALUES)
def test_spans_of_the_papers(name, options, value):
    """GPipe's with W right behind B; the bubble of 1F1B is (p - 1) (F + B + W) with W within B."""
    instance = generate("microbatches", 0, objective="span", **options)
    assert method(name, "deployment").solve(instance, Limits()).objective == value


PUBLISHED = [
    (2, 4, (2, 3, 1), 0, 51, 51), (4, 8, (2, 3, 1), 0, 107, 107), (4, 12, (2, 3, 1), 0, 155, 155),
    (2, 4, (3, 4, 2), 1, 80, 79), (4, 8, (3, 4, 2), 1, 170, 170), (8, 24, (1, 1, 1), 0, 151, 144),
]  # fmt: skip
"""Makespans and spans of ZB-V in memory for 2 p chunks, by the scheduler that was released with the paper."""


@pytest.mark.parametrize(("p", "n", "times", "transfer", "makespan", "span"), PUBLISHED)
def test_zb_v_is_that_of_the_released_scheduler(p, n, times, transfer, makespan, span):
    f, b, w = map(float, times)
    for objective, value in (("makespan", makespan), ("span", span)):
        instance = generate(
            "microbatches", 0, stages=p, micro_batches=n, chunks=2, shape="v", memory=2.0 * p, objective=objective,
            forward_s=f, backward_s=b, weights_s=w, transfer_s=float(transfer),
        )  # fmt: skip
        found = method("zb-v", "deployment").solve(instance, Limits())
        assert found.objective == value


@pytest.mark.parametrize(
    ("name", "stages", "micro_batches", "memory", "options", "drawn", "least"),
    [
        ("zb-h2", 2, 4, 3.0, {"forward_s": 2.0, "backward_s": 3.0}, 27, 26),
        ("zb-h1", 3, 3, 3.0, {"transfer_s": 1.0}, 17, 15),
        ("zb-h1", 3, 3, 6.0, {"transfer_s": 1.0}, 17, 15),
        ("zb-h2", 2, 4, 3.0, {}, 13, 13),
    ],
)
def test_w_and_f_go_where_the_times_want_them(name, stages, micro_batches, memory, options, drawn, least):
    """What ZB-H1 and ZB-H2 lose where they stay as drawn for unit times.

    ZB-H2 of times 2 : 3 : 1 has W of micro-batch 0 before F of micro-batch 3 on its second device, which delays the
    last B by 1. There it begins at 2, runs F and B in turn (4 times 5), and B and W of the first device follow: 26.
    ZB-H1 with transfers of 1 waits on its second device with F of micro-batch 2 for B of micro-batch 0, which comes two
    moments late; from then on the last device is late. Its F at 0, 4 and then one after another with B end at
    4 + 3 * 2 = 10; B goes up by 1 + 1, 1 + 1, W follows: 15.
    """
    instance = generate("microbatches", 0, stages=stages, micro_batches=micro_batches, memory=memory, **options)
    assert method(f"{name}:drawn=true", "deployment").solve(instance, Limits()).objective == drawn
    assert method(name, "deployment").solve(instance, Limits()).objective == least


PUBLISHED_ONE = [
    (4, 12, (2, 3, 1), 0, 84, 84, 78, 76), (8, 24, (2, 3, 1), 0, 172, 172, 158, 156),
    (4, 8, (3, 4, 2), 1, 99, 99, 85, 85), (4, 12, (3, 4, 2), 1, 135, 135, 120, 117),
    (4, 12, (3, 5, 2), 1, 150, 150, 132, 132), (8, 24, (1, 2, 1), 0, 110, 110, 103, 103),
]  # fmt: skip
"""Makespans and spans of ZB-H1 in memory for p micro-batches and of ZB-H2 for 2 p - 1, by the released scheduler."""


@pytest.mark.parametrize(("p", "n", "times", "transfer", "one", "span_one", "two", "span_two"), some(PUBLISHED_ONE, 3))
def test_zb_h1_and_zb_h2_are_those_of_the_released_scheduler(p, n, times, transfer, one, span_one, two, span_two):
    f, b, w = map(float, times)
    for name, memory, values in (("zb-h1", p, (one, span_one)), ("zb-h2", 2 * p - 1, (two, span_two))):
        for objective, least in zip(("makespan", "span"), values, strict=True):
            instance = generate(
                "microbatches", 0, stages=p, micro_batches=n, memory=float(memory), objective=objective,
                forward_s=f, backward_s=b, weights_s=w, transfer_s=float(transfer),
            )  # fmt: skip
            found = method(name, "deployment").solve(instance, Limits())
            assert found.checked
            assert found.objective == least


@pytest.mark.parametrize("seed", seeds(3, 200))
def test_zb_fits_and_is_never_longer_than_drawn(seed):
    """Unlike times, transfers, memory and what B gives back."""
    draw = random.Random(seed)
    p, n = draw.randint(1, 5), draw.randint(1, 9)
    instance = generate(
        "microbatches", seed, stages=p, micro_batches=n, memory=float(draw.randint(p, 2 * p)),
        objective=draw.choice(("makespan", "span")), transfer_s=float(draw.choice((0, 0, 1, 2))),
    )  # fmt: skip
    chunks = [
        chunk.model_copy(
            update={"forward_s": draw.randint(0, 4), "backward_s": draw.randint(0, 4), "weights_s": draw.randint(0, 4),
                    "freed_bytes": draw.choice((0.0, 0.25, 1.0))}
        )
        for chunk in instance.chunks
    ]  # fmt: skip
    instance = instance.changed(chunks=tuple(chunks))
    for name in ("zb-h1", "zb-h2"):
        drawn = method(f"{name}:drawn=true", "deployment").solve(instance, Limits())
        found = method(name, "deployment").solve(instance, Limits())
        assert found.checked == drawn.checked
        assert not drawn.checked or found.objective <= drawn.objective


def test_zb_v_in_little_memory():
    """Never more than there is; where its rules come to a stop it says so."""
    for memory in (2.0, 3.0, 4.0, 5.0, 6.0):
        instance = generate("microbatches", 0, stages=4, micro_batches=8, chunks=2, shape="v", memory=memory)
        found = method("zb-v", "deployment").solve(instance, Limits())
        assert found.checked or "come to a stop" in found.message


def test_dualpipe_runs_and_fills():
    """With B and W as long as F each device works 6 n; what it loses is a ramp that does not grow with n."""
    losses = []
    for n in (16, 32):
        instance = generate("microbatches", 0, stages=4, shape="dual", micro_batches=n, memory=5.0, objective="span")
        found = method("dualpipe", "deployment").solve(instance, Limits())
        assert found.checked
        assert found.details["largest_memory_bytes"] <= 5
        losses.append(found.objective - 3 * n)
    assert losses[0] == losses[1] > 0


REFUSALS = [
    ("1f1b", {"chunks": 2}, "one chunk a device"),
    ("1f1b", {"shape": "dual"}, "one chain"),
    ("zb-h1", {"fused": True}, "W as passes of their own"),
    ("interleaved-1f1b", {"chunks": 2, "shape": "v"}, "go around"),
    ("interleaved-1f1b", {"chunks": 2, "micro_batches": 6}, "a multiple of 4"),
    ("zb-v", {"chunks": 2}, "there and back"),
    ("dualpipe", {}, "two chains in opposite directions"),
    ("dualpipe", {"stages": 3, "shape": "dual"}, "an even number of devices"),
    ("dualpipe", {"shape": "dual", "micro_batches": 6}, "4 micro-batches or more in each direction"),
]


@pytest.mark.parametrize(("name", "options", "words"), REFUSALS)
def test_what_papers_do_not_cover_is_refused(name, options, words):
    assert words in method(name, "deployment").refuses(generate("microbatches", 0, **options))


def test_orders_that_do_not_fit_are_no_answers():
    instance = generate("microbatches", 0, stages=4, micro_batches=6, memory=3.0)
    found = method("1f1b", "deployment").solve(instance, Limits())
    assert found.solution is None
    assert "device 0 needs 4 bytes and has 3" in found.message
    assert method("1f1b:capped=true", "deployment").solve(instance, Limits()).checked


@pytest.mark.parametrize("seed", seeds(8, 60))
def test_lists_always_end(seed):
    """Also where chunks that share devices could take each other's last memory."""
    instance = drawn(seed)
    found = method("list-scheduling", "deployment").solve(instance, Limits())
    assert found.checked


def test_lists_of_chunks_that_could_stop_each_other():
    for shape in ("around", "v", "dual"):
        for memory in (2.0, 2.5, 3.0):
            chunks = 1 if shape == "dual" else 2
            instance = generate(
                "microbatches",
                0,
                stages=3,
                micro_batches=6,
                shape=shape,
                chunks=chunks,
                memory=memory,
                objective="span",
            )
            ticks = exact_ticks(instance)
            words = schedule(ticks, rules(ticks)[0])
            assert evaluate_order(instance, order_of(ticks, words)).feasible


def test_times_without_a_small_unit():
    """Tenths have no unit in common as binary numbers; twelve digits have, and the optimum is ten times smaller."""
    whole = generate("microbatches", 0, stages=3, micro_batches=4, memory=2.0, objective="span")
    tenths = generate(
        "microbatches", 0, stages=3, micro_batches=4, memory=2.0, objective="span",
        forward_s=0.1, backward_s=0.1, weights_s=0.1,
    )  # fmt: skip
    mixed = generate("microbatches", 0, stages=3, micro_batches=4, memory=2.0, forward_s=0.3, backward_s=0.7)
    one, other, third = (ddlopt.solve(each, time_limit=60) for each in (whole, tenths, mixed))
    assert (one.status, other.status, third.status) == ("optimal", "optimal", "optimal")
    assert other.objective == pytest.approx(one.objective / 10, rel=1e-9)


def test_less_than_one_micro_batch():
    instance = generate("microbatches", 0, stages=2, chunks=2).changed(memory_bytes=(1.0, 4.0))
    found = ddlopt.solve(instance)
    assert found.status is Status.INFEASIBLE
    assert "memory_bytes[0] is 1, less than the 2 bytes" in found.message


def test_time_that_is_up_leaves_a_bound():
    instance = generate("microbatches", 0, stages=4, micro_batches=8, memory=2.5, objective="span")
    found = ddlopt.solve(instance, time_limit=1e-9)
    assert found.checked
    assert found.bound < found.objective


@pytest.mark.parametrize("name", ["list-scheduling", "order-search"])
def test_rules_end_when_the_time_is_up(name):
    """Within a rule as well; what always fits is the answer then."""
    instance = generate("microbatches", 0, stages=6, micro_batches=12, memory=4.0, objective="span")
    asked = iter(range(9))
    late = Asked(lambda: next(asked, None) is None)
    ticks = exact_ticks(instance)
    assert schedule(ticks, rules(ticks)[0], late) is None
    found = method(name, "deployment").solve(instance, Limits(time_s=1e-9))
    assert found.checked
    assert found.objective == method("1f1b:capped=true", "deployment").solve(instance, Limits()).objective


@pytest.mark.slow
def test_public_values():
    """Every value of a public collection, proven, and that of one that has none."""
    path = shared_data("microbatches/instances.json")
    for row in parsed(read_text(path))["instances"]:
        instance = convert(path, "microbatches", instance=row["name"])
        found = ddlopt.solve(instance)
        if row["value"] is None:
            assert found.status is Status.INFEASIBLE, row["name"]
            continue
        assert found.status is Status.OPTIMAL, row["name"]
        assert found.objective == pytest.approx(row["value"], rel=1e-9), row["name"]
        for name, known in row["handcrafted"].items():
            name = name.replace("_", "-").replace("1f1b-capped", "1f1b:capped=true")
            if known["fits"] and name in ("gpipe", "1f1b", "1f1b:capped=true", "zb-h1", "interleaved-1f1b"):
                solved = method(name, "deployment").solve(instance, Limits())
                assert solved.objective == pytest.approx(eval_fraction(known["value"])), (row["name"], name)


def eval_fraction(text):
    whole, _, below = text.partition("/")
    return int(whole) / int(below or 1)


def test_models_of_many_gigabytes_are_refused_before_they_are_built():
    """Rows count all passes that have begun: their lengths add up to the square of the time."""
    reason = CountedStarts().refuses(ddlopt.load("deployment/microbatches-barrier-p3-n5"))
    assert reason is not None
    assert "coefficients" in reason
    assert CountedStarts().refuses(ddlopt.load("deployment/microbatches-v-p3-n5")) is None
