"""Proofs by prices: plans of jobs against all of them, bounds against optima that were found by trying everything."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from refusals import one_line
from scheduling_brute_force import UTILITIES, brute_force, iteration_s, random_instance
from volume import for_each, slow

import ddlopt
from ddlopt import instances
from ddlopt.certificates.own import own_certificate
from ddlopt.certificates.scheduling import PriceCertificate, plans
from ddlopt.certificates.scheduling.certificate import offer
from ddlopt.certificates.scheduling.kept import KeptOffers, kept_beaten
from ddlopt.certificates.scheduling.patterns import dearest, rooms_of
from ddlopt.certificates.scheduling.relaxed import Cluster
from ddlopt.certificates.scheduling.ring_rows import RingRow
from ddlopt.frontier.scheduling import kept_runs
from ddlopt.frontier.scheduling.prices.plan_pricing import PlanPricing
from ddlopt.frontier.scheduling.prove import _by_charges, prove
from ddlopt.instances.library import certificates
from ddlopt.models.catalogue import problem_of
from ddlopt.models.errors import NotApplicableError, RefutedError, SolutionError
from ddlopt.models.scheduling import AllOrNothing
from ddlopt.models.scheduling.fair_time import fair_s
from ddlopt.solvers import proofs

SCALE = 2**30
KINDS = (
    {},
    {"utilities": tuple(UTILITIES), "min_workers": True},
    {"energy": True, "places": (2, 3)},
    {"uneven": True, "places": (3, 2), "deadlines": True},
    {"pollux": True, "latency": True, "places": (2, 2)},
    {"network": "star", "places": (2, 2)},
    {"change": True, "preemptive": True},
    {"preemptive": False, "utilities": ("all_or_nothing",)},
)


KEPT = (
    {"change": True, "least_runs": True, "utilities": tuple(UTILITIES)},
    {"least_runs": True, "deadlines": True},
    {"change": True},
)


def drawn(seed, kinds=KINDS, slots=3):
    """A tiny instance of the kind whose turn it is."""
    rng = np.random.default_rng(seed)
    return rng, random_instance(rng, jobs=2, slots=slots, **kinds[seed % len(kinds)])


def some_prices(rng, instance, cluster):
    """(T, R) whole prices; all resources together cost some utilities."""
    size = rng.choice([0.0, 0.3, 1.0, 3.0])
    return [
        [round(SCALE * size * rng.random() / max(1.0, float(room))) for room in cluster.capacity]
        for _ in range(instance.slots)
    ]


def progress(instance, job, widths):
    """Mini-batches of widths in the slots of a job's window; None where a run is too short."""
    done, started, begun, before = 0.0, 0, False, 0
    for slot, width in enumerate((*widths, 0)):
        if width != before:
            over = slot == len(widths) or done >= job.minibatches * (1 - 1e-9)
            if before and slot - started < job.least_run_slots and not over:
                return None
            started = slot
        if width:
            loses = instance.preemptive and begun and width != before
            done += width * (instance.slot_s - (job.change_s if loses else 0)) / iteration_s(job.timing, width)
            begun = True
        before = width
    return done


def beaten(choice, most):
    return (kept_beaten if isinstance(choice, KeptOffers) else plans.beaten)(choice, most)


def best_of_all_plans(instance, cluster, place, prices):
    """Largest worth less cost of a job, over all widths in all slots."""
    job, best = instance.jobs[place], 0.0
    window = range(job.arrival, instance.last_slot(place))
    for widths in itertools.product((0, *job.widths), repeat=len(window)):
        done = progress(instance, job, widths)
        if done is None:
            continue
        part = min(1.0, done / job.minibatches)
        cost = sum(
            w * (float(cluster.worker_cost[0]) + float(np.dot(prices[t], cluster.demand[place])) / SCALE)
            for t, w in zip(window, widths, strict=True)
        )
        best = max(best, job.utility.of(part + 1e-12 if isinstance(job.utility, AllOrNothing) else part) - cost)
    return best


@for_each("seed", range(64))
def test_the_best_plan_is_that_of_all_and_bounds_are_no_less_than_the_optimum(seed):
    _check_plans(*drawn(seed))


@for_each("seed", range(48))
def test_the_best_plan_that_is_kept_is_that_of_all(seed):
    rng, instance = drawn(seed, KEPT, 4)
    _check_plans(rng, instance)


def _check_plans(rng, instance):
    cluster = Cluster(instance)
    prices = some_prices(rng, instance, cluster)
    bound = sum(float(c) * sum(row[r] for row in prices) / SCALE for r, c in enumerate(cluster.capacity))
    for place in range(len(instance.jobs)):
        best = best_of_all_plans(instance, cluster, place, prices)
        choice = offer(instance, cluster, place, SCALE, prices)
        assert not beaten(choice, math.ceil(best * SCALE) + 1000)[0]
        if best > 1e-5:
            assert beaten(choice, math.floor(best * SCALE) - 1000)[0]
        bound += best
    assert bound >= brute_force(instance).objective - 1e-7


@for_each("seed", range(16))
def test_less_than_the_optimum_is_never_proven_and_what_is_proven_holds(seed):
    _, instance = drawn(seed)
    found = brute_force(instance)
    optimum = Fraction(found.objective)
    if optimum <= 0:
        return
    assert prove(instance, found.schedule, optimum * (1 - Fraction(1, 10**6)), lambda: False) is None
    proof = prove(instance, found.schedule, 2 * optimum, lambda: False)
    assert proof is not None
    assert ddlopt.check_certificate(instance, proof).bound == 2 * optimum


@for_each("seed", range(12))
def test_of_plans_that_are_kept_less_than_the_optimum_is_never_proven(seed):
    _, instance = drawn(seed, KEPT, 4)
    found = brute_force(instance)
    optimum = Fraction(found.objective)
    if optimum <= 0:
        return
    assert prove(instance, found.schedule, optimum * (1 - Fraction(1, 10**6)), lambda: False) is None
    proof = prove(instance, found.schedule, 2 * optimum, lambda: False)
    assert proof is not None
    assert ddlopt.check_certificate(instance, proof).bound == 2 * optimum


TYPED = (
    {"types": "mixed", "places": (2, 2)},
    {"types": "apart", "places": (3, 2, 1), "utilities": tuple(UTILITIES), "change": True},
    {"types": "mixed", "places": (2, 1), "uneven": True, "deadlines": True},
    {"types": "mixed", "places": (2, 2), "energy": True},
)


@for_each("seed", range(32))
def test_the_best_plan_on_types_is_the_one_that_is_priced(seed):
    rng, instance = drawn(seed, TYPED)
    if not instance.accelerators.matter:
        return
    cluster, pricing = Cluster(instance), PlanPricing(instance)
    assert [float(one) for one in cluster.capacity] == pytest.approx(pricing.capacity.tolist(), rel=1e-8)
    prices = some_prices(rng, instance, cluster)
    found = pricing.answer(np.array(prices) / SCALE)
    for place, best in enumerate(found.values.tolist()):
        choice = offer(instance, cluster, place, SCALE, prices)
        assert not plans.beaten(choice, math.ceil(best * SCALE * (1 + 1e-7)) + 1000)[0]
        if best > 1e-5:
            assert plans.beaten(choice, math.floor(best * SCALE * (1 - 1e-7)) - 1000)[0]


@for_each("seed", range(16))
def test_on_types_less_than_the_optimum_is_never_proven(seed):
    _, instance = drawn(seed, TYPED)
    found = brute_force(instance)
    optimum = Fraction(found.objective)
    if optimum <= 0:
        return
    assert prove(instance, found.schedule, optimum * (1 - Fraction(1, 10**6)), lambda: False) is None
    proof = prove(instance, found.schedule, 2 * optimum, lambda: False)
    assert proof is not None
    assert ddlopt.check_certificate(instance, proof).bound == 2 * optimum


CHARGED = (
    {"change": True, "utilities": tuple(UTILITIES), "places": (3,)},
    {"types": "mixed", "places": (2, 1)},
    {"least_runs": True, "deadlines": True, "places": (2, 2)},
    {"types": "apart", "places": (3, 2, 1), "utilities": tuple(UTILITIES)},
    {"places": (3,)},
    {"places": (2, 2), "network": "star"},
    {"places": (1, 2, 1), "network": "tree"},
)


@for_each("seed", range(21))
def test_by_charges_less_than_the_optimum_is_never_proven(seed):
    rng, instance = drawn(seed, CHARGED, 4)
    optimum = Fraction(brute_force(instance).objective)
    if optimum <= 0:
        return
    assert _by_charges(instance, optimum * (1 - Fraction(1, 10**6)), lambda: False) is None
    proof = _by_charges(instance, 2 * optimum, lambda: False)
    assert proof is not None
    assert proof.charges
    assert ddlopt.check_certificate(instance, proof).bound == 2 * optimum
    assert PriceCertificate.from_data(json.loads(proof.text)) == proof
    # Whatever is charged, and with the least surplus that the check lets pass, the claim is no less than the optimum.
    cluster = Cluster(instance)
    factor = rng.choice([0.0, 0.3, 1.0, 3.0])
    charges = [[[int(each * factor * rng.random()) for each in row] for row in slot] for slot in proof.charges]
    other = replace(proof, charges=charges)
    surplus = []
    for place, job in enumerate(instance.jobs):
        mine = [charges[slot][place] for slot in range(job.arrival, instance.last_slot(place))]
        choice = offer(instance, cluster, place, proof.scale, proof.prices, mine)
        low, high = -1, math.ceil(float(job.utility.value) * 100 * proof.scale)
        while high - low > 1:
            middle = (low + high) // 2
            check = plans.beaten if instance.accelerators.matter else kept_beaten
            better = check(choice, middle)[0] if middle >= 0 else True
            low, high = (middle, high) if better else (low, middle)
        surplus.append(high)
    claim = Fraction(other.income(instance, cluster) + sum(surplus), proof.scale)
    least = replace(other, surplus=surplus, claim=claim)
    assert least.check(instance, lambda: False) >= 0
    assert claim >= optimum * (1 - Fraction(1, 10**9))


@for_each("seed", range(20))
def test_the_dearest_pattern_is_that_of_all(seed):
    """Of workers on types, with rows of rings, against every way to place all of them."""
    rng = np.random.default_rng(seed)
    rooms = tuple(rng.integers(1, 4, rng.integers(1, 4)).tolist())
    jobs = []
    for _ in range(int(rng.integers(1, 4))):
        kinds = [tuple(k for k in range(len(rooms)) if rng.random() < 0.7) or (0,) for _ in range(2)]
        own = [(types, int(rng.integers(1, 4))) for types in kinds]
        jobs.append((len(jobs), own, rng.integers(0, 10, len(own)).tolist()))
    rows = [
        RingRow(rng.integers(0, 3, (len(jobs), 4)), int(rng.integers(1, 4))) for _ in range(int(rng.integers(0, 3)))
    ]
    best = 0
    ways = [
        [((0,) * (len(rooms) + len(rows)), 0)]
        + [
            ((*taken, *(int(row.units[job, width]) for row in rows)), cost)
            for (types, width), cost in zip(own, costs, strict=True)
            for taken in itertools.product(*(range(width + 1 if k in types else 1) for k in range(len(rooms))))
            if sum(taken) == width
        ]
        for job, own, costs in jobs
    ]
    limits = (*rooms, *(row.capacity for row in rows))
    for chosen in itertools.product(*ways):
        if all(sum(taken[k] for taken, _ in chosen) <= limit for k, limit in enumerate(limits)):
            best = max(best, sum(cost for _, cost in chosen))
    assert dearest(rooms, jobs, rows) == best


def test_charges_for_other_slots_jobs_or_widths_are_refused():
    _, instance = drawn(0, CHARGED, 4)
    proof = _by_charges(instance, Fraction(10**3), lambda: False)
    with one_line(RefutedError, "the proof charges for other slots or jobs"):
        replace(proof, charges=proof.charges[1:]).check(instance, lambda: False)
    more = [[[*row, 0] for row in slot] for slot in proof.charges]
    with one_line(RefutedError, "options in a slot; the proof charges for others"):
        replace(proof, charges=more).check(instance, lambda: False)
    data = json.loads(proof.text)
    for wrong in ([], [[1]], [[[-1]]], [[[True]]], {}, None):
        with one_line(SolutionError, "charges has a list of lists"):
            PriceCertificate.from_data(data | {"charges": wrong})
    unequal = random_instance(np.random.default_rng(0), jobs=3, slots=2, uneven=True, places=(4,))
    with one_line(NotApplicableError, "patterns are of workers that take one place each"):
        rooms_of(Cluster(unequal))


def test_a_proof_knows_what_changes_lose():
    """Its prices and surpluses are none where changes cost nothing, nor where jobs are said to gain less."""
    instance = instances.load("scheduling/change-j20-t20-g16")
    free = kept_runs.without_cost_of_change(instance)
    best = instances.best("scheduling/change-j20-t20-g16")
    target = Fraction(float(ddlopt.check(instance, best).objective)) * (1 + Fraction(4, 10**4))
    proof = prove(instance, best, target, lambda: False)
    assert proof is not None
    assert proofs.check(instance, proof).bound == target
    same = PriceCertificate(free.name, free.digest, target, proof.scale, proof.prices, proof.surplus)
    with one_line(RefutedError, "a plan of job"):
        proofs.check(free, same)
    less = PriceCertificate(
        instance.name, instance.digest, target, proof.scale, proof.prices, [one * 999 // 1000 for one in proof.surplus]
    )
    with one_line(RefutedError, "a plan of job"):
        proofs.check(instance, less)


def test_a_job_that_is_alone_is_proven_to_the_last_unit():
    """A plan of half a job in each of two slots, at no price: all of it."""
    rng = np.random.default_rng(3)
    instance = random_instance(rng, jobs=1, slots=2, utilities=("capped",), arrivals=False)
    worth = Fraction(brute_force(instance).objective)
    best = math.ceil(worth * SCALE) + 2
    free = [[0]] * 2
    claim = Fraction(best, SCALE)
    proof = PriceCertificate(instance.name, instance.digest, claim, SCALE, free, [best])
    assert proofs.check(instance, proof).bound == claim
    less = PriceCertificate(instance.name, instance.digest, claim, SCALE, free, [best - 10])
    with one_line(RefutedError, f"a plan of job 0 is worth more than {best - 10} units above its cost"):
        proofs.check(instance, less)
    above = PriceCertificate(instance.name, instance.digest, worth, SCALE, [[1], [1]], [best])
    with one_line(RefutedError, "more than the claim of"):
        proofs.check(instance, above)


def test_where_jobs_count_whole_the_bound_is_rounded_to_what_values_add_up_to():
    instance = instances.load("scheduling/tiny-all-or-nothing")
    jobs = [job.model_copy(update={"utility": AllOrNothing(value=2.5)}) for job in instance.jobs]
    instance = instance.model_copy(update={"jobs": tuple(jobs), "name": "alike"})
    surplus = [3 * SCALE] * len(jobs)
    free = [[0]] * instance.slots
    claim = Fraction(5, 2) * (3 * len(jobs) * 2 // 5)
    assert claim < 3 * len(jobs)
    proof = PriceCertificate("alike", instance.digest, claim, SCALE, free, surplus)
    assert proofs.check(instance, proof).bound == claim
    less = PriceCertificate("alike", instance.digest, claim - Fraction(1, 10), SCALE, free, surplus)
    with one_line(RefutedError, "the prices bound the utility of 'alike'"):
        proofs.check(instance, less)


@for_each("seed", [*range(8), *map(slow, range(8, 60))])
def test_a_ratio_above_the_optimum_is_never_proven_and_what_is_proven_holds(seed):
    instance = random_instance(
        np.random.default_rng(seed),
        slots=4,
        places=((3,), (2, 2))[seed % 2],
        objective="finish_time_fairness",
        min_workers=seed % 3 == 0,
        preemptive=seed % 4 != 1,
        change=seed % 4 == 2,
    )
    found = brute_force(instance)
    if found is None:
        return
    optimum = Fraction(found.objective)
    assert prove(instance, found.schedule, optimum * (1 + Fraction(1, 10**6)), lambda: False) is None
    # One slot is less than any job takes that has a ratio.
    least = min(1 / (fair_s(instance, job, Fraction) / 10) for job in range(len(instance.jobs)))
    for target in (least, optimum * (1 - Fraction(1, 10**6))):
        proof = prove(instance, found.schedule, target, lambda: False)
        assert proof is None or ddlopt.check_certificate(instance, proof).bound == target


def test_deadlines_prove_a_ratio():
    """No schedule has a ratio below 9/17, and the same prices prove no larger one."""
    instance = instances.load("scheduling/fairness-bursty-j40-g16")
    best = instances.best("scheduling/fairness-bursty-j40-g16")
    proof = prove(instance, best, Fraction(9, 17), lambda: False)
    assert proof is not None
    assert ddlopt.check_certificate(instance, proof).bound == Fraction(9, 17)
    more = PriceCertificate(instance.name, instance.digest, Fraction(8, 15), proof.scale, proof.prices, proof.surplus)
    with one_line(RefutedError, "a plan of job"):
        proofs.check(instance, more)
    cheaper = PriceCertificate(
        instance.name, instance.digest, Fraction(9, 17), proof.scale, proof.prices, [proof.scale] * len(instance.jobs)
    )
    with one_line(RefutedError, "the prices bound the jobs with smaller ratios of"):
        proofs.check(instance, cheaper)


def test_too_many_plans_are_given_up(monkeypatch):
    monkeypatch.setattr(plans, "EFFORT", plans.Effort(labels=1))
    name = "scheduling/elastic-j10-t10-g8"
    with one_line(RefutedError, "too many plans of job"):
        ddlopt.check_certificate(name, certificates.file_of(name))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tiny-makespan", "prices are no proof for objective 'makespan'"),
        ("tiny-contention", "prices are no proof for objective"),
    ],
)
def test_other_objectives_are_refused(name, words):
    instance = instances.load(f"scheduling/{name}")
    with one_line(NotApplicableError, words):
        PriceCertificate(name, instance.digest, Fraction(1), 1, [], []).check(instance, lambda: False)


def test_bandwidth_that_is_shared_is_that_of_the_widest_link():
    """What is proven is not refuted by a schedule, and not proven where a link is wider."""
    instance = instances.load("scheduling/tiny-shared")
    best = instances.best("scheduling/tiny-shared")
    optimum = problem_of(instance).evaluate(instance, best, exact=True).objective
    assert prove(instance, best, optimum * (1 - Fraction(1, 10**6)), lambda: False) is None
    instance = instances.load("scheduling/contended-shared-j10-t4-s4")
    best = instances.best("scheduling/contended-shared-j10-t4-s4")
    optimum = problem_of(instance).evaluate(instance, best, exact=True).objective
    proof = prove(instance, best, optimum * (1 + Fraction(1, 10**4)), lambda: False)
    assert proof.check(instance, lambda: False) > 0
    links = tuple((u, v, 4 * rate) for u, v, rate in instance.network.links)
    faster = instance.model_copy(update={"network": instance.network.model_copy(update={"links": links})})
    with pytest.raises(RefutedError):
        proof.check(faster, lambda: False)


def test_bandwidth_that_depends_on_others_is_refused():
    fields = {"places": (2, 2), "contention": True, "jobs": 1}
    instance = random_instance(np.random.default_rng(0), **fields)
    proof = PriceCertificate(instance.name, instance.digest, Fraction(100), 1, [[0]] * instance.slots, [1])
    with one_line(NotApplicableError, "prices say nothing where bandwidth depends on other jobs"):
        proof.check(instance, lambda: False)


GOOD = {
    "format": "ddlopt price certificate",
    "version": 1,
    "instance": "tiny-capped",
    "instance_digest": instances.load("scheduling/tiny-capped").digest,
    "claim": "100",
    "scale": 2**20,
    "prices": [[0]] * instances.load("scheduling/tiny-capped").slots,
    "surplus": [10 * 2**20] * len(instances.load("scheduling/tiny-capped").jobs),
}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"scale": 0}, "scale is a whole number"),
        ({"scale": True}, "scale is a whole number"),
        ({"scale": 2**62 + 1}, "scale is a whole number"),
        ({"scale": float("nan")}, "is no certificate"),
        ({"scale": 2**60}, "numbers might overflow"),
        ({"prices": None}, "prices has a list for each slot"),
        ({"prices": [[0], 0]}, "prices has a list for each slot"),
        ({"prices": [[-1]] * len(GOOD["prices"])}, "prices has a list for each slot"),
        ({"prices": [[0.5]] * len(GOOD["prices"])}, "prices has a list for each slot"),
        ({"prices": GOOD["prices"][1:]}, "the proof has not"),
        ({"prices": [[0, 0]] * len(GOOD["prices"])}, "the proof has not"),
        ({"surplus": {}}, "surplus is a list"),
        ({"surplus": [-1]}, "surplus is a list"),
        ({"surplus": [10**30]}, "surplus is a list"),
        ({"surplus": GOOD["surplus"][1:]}, "jobs, but the proof has"),
        ({"surplus": [0] * len(GOOD["surplus"])}, "a plan of job 0 is worth more than 0 units"),
        ({"claim": "nan"}, "the claim a fraction"),
        ({"claim": 100.0}, "the claim a fraction"),
        ({"claim": "1/100"}, "more than the claim of 0.01"),
        ({"more": 1}, "is no prices certificate"),
    ],
)
def test_hostile_files_are_refused_in_a_line(changed, words, tmp_path):
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(GOOD))
    assert ddlopt.check_certificate("scheduling/tiny-capped", path).bound == 100
    path.write_text(json.dumps(GOOD | changed))
    with one_line((SolutionError, NotApplicableError), words):
        ddlopt.check_certificate("scheduling/tiny-capped", path)


@pytest.mark.parametrize("missing", ["scale", "prices", "surplus"])
def test_nothing_may_be_missing(missing):
    with one_line(SolutionError, "is no prices certificate"):
        PriceCertificate.from_data({key: value for key, value in GOOD.items() if key != missing})


@pytest.mark.parametrize("name", ["elastic-j10-t10-g8", "energy-j20-t20-g16", "philly-hour-j49-t48-g32"])
def test_bundled_ones_have_proofs_that_hold(name):
    full = f"scheduling/{name}"
    instance = instances.load(full)
    assert own_certificate("scheduling") is PriceCertificate
    objective = ddlopt.check(instance, instances.best(full), exact=True).objective
    found = ddlopt.check_certificate(full, certificates.file_of(full)).bound
    assert objective <= found <= objective * Fraction(10_001, 10_000)
