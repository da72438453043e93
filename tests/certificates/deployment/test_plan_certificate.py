"""Proofs for plans: bounds of partial plans hold for all their completions, and claims for all plans."""

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
from deployment_plans import anneal_little, masks, queues, random_deployment, random_instance
from refusals import one_line
from volume import for_each, slow

import ddlopt
from ddlopt import instances
from ddlopt.certificates.deployment.plan import PlanCertificate
from ddlopt.certificates.deployment.plan.choices import choices_of
from ddlopt.certificates.deployment.plan.kernels import bound, room_for
from ddlopt.certificates.deployment.plan.tables import GOAL, tables_of
from ddlopt.frontier.deployment.plan.prove import orders, prove
from ddlopt.instances.library import certificates
from ddlopt.models.deployment import Deployment, DeploymentInstance, GroupPlan
from ddlopt.models.deployment.plan.evaluate import evaluate_plan
from ddlopt.models.deployment.plan.shares import placed
from ddlopt.models.deployment.plan.simulator.simulate import simulate
from ddlopt.models.errors import NotApplicableError, RefutedError, SolutionError, SolverError
from ddlopt.solvers import proofs

TINY = instances.load("deployment/tiny-g3-m2-s2")
GOOD = PlanCertificate(TINY.name, TINY.digest, Fraction(689, 10_000), [2, 0, 1])


def proven(instance, claim, order):
    return proofs.check(instance, PlanCertificate(instance.name, instance.digest, claim, order)).bound


def certain(instance, deployment, known):
    """Of each group the place of what is decided for it."""
    where, found = placed(instance, deployment), []
    for members, plan, own in zip(instance.members, deployment.groups, known, strict=True):
        syncs = []
        for place in members:
            none = len(where[place]) < 2 or not instance.operators[place].gradient_bytes
            way = "reduce" if plan.mode == "all_reduce" else "server"
            syncs.append("none" if none or place in deployment.duplicated else way)
        effects = tuple(where[place] for place in members), tuple(syncs)
        found.append([(choice.seats, choice.syncs) for choice in own].index(effects))
    return found


@for_each("seed", range(60))
def test_no_completion_is_below_the_bound_of_a_part_of_it(seed):
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, operators=7, most_devices=2, whole_numbers=bool(seed % 2))
    assert bounds_hold(rng, instance, 12) > 0.9  # of whole plans


@for_each("seed", [733, 1335, 2028, *(slow(seed) for seed in range(60))])
def test_nor_with_more_device_groups(seed):
    """In the first three an operator that is not decided asks for a transfer before others do."""
    rng = np.random.default_rng(10_000_000 + seed)
    groups = int(rng.integers(2, 6))
    operators, device_groups = int(rng.integers(groups, 13)), int(rng.integers(1, 5))
    sizes = {"operators": operators, "groups": groups, "device_groups": device_groups}
    most = int(rng.integers(1, 4 if device_groups < 4 else 3))
    instance = random_instance(rng, **sizes, most_devices=most, whole_numbers=bool(seed % 3))
    try:
        bounds_hold(rng, instance, 12)
    except NotApplicableError as problem:
        pytest.skip(str(problem))


def bounds_hold(rng, instance, count):
    """How near the bounds of random plans come to their times; those of all parts of the plans are no higher."""
    known = [choices_of(instance, group) for group in range(instance.groups)]
    deployments = [random_deployment(rng, instance) for _ in range(count)]
    times = [Fraction(simulate(instance, each, exact=True).time_s) for each in deployments]
    claim = 2 * max(times)  # where no bound is cut off
    tables = tables_of(instance, known, claim)
    room, close = room_for(tables), 0.0
    for deployment, time_s in zip(deployments, times, strict=True):
        whole = certain(instance, deployment, known)
        for decided in itertools.product((False, True), repeat=instance.groups):
            chosen = np.array([place if own else -1 for place, own in zip(whole, decided, strict=True)])
            found = bound(tables, room, chosen)
            assert found <= time_s * GOAL / claim
            close = max(close, float(found * claim / GOAL / time_s) if all(decided) else 0.0)
    return close


def test_copies_that_nobody_reads_have_nothing_after_them():
    instance = DeploymentInstance.from_data(
        {
            "name": "unlike",
            "operators": [
                {"name": "first", "group": 0, "times_s": {"fast": [1.0], "slow": [10.0]}},
                {"name": "second", "group": 1, "times_s": {"fast": [5.0], "slow": [50.0]}},
            ],
            "tensors": [{"producer": 0, "consumers": [1], "size_bytes": 1}],
            "device_groups": [
                {"type": kind, "count": 1, "memory_bytes": 9, "bandwidth_bytes_per_s": 1} for kind in ("fast", "slow")
            ],
            "bandwidth_bytes_per_s": [[1, 1], [1, 1]],
        }
    )
    plans = [
        GroupPlan(device_groups=(0, 1), mode="all_reduce"),
        GroupPlan(device_groups=(0,), mode="all_reduce"),
    ]
    deployment = Deployment(instance="unlike", groups=plans, duplicated=(0,))
    assert simulate(instance, deployment, exact=True).time_s == 10
    known = [choices_of(instance, group) for group in range(2)]
    tables = tables_of(instance, known, Fraction(40))
    chosen = np.array([certain(instance, deployment, known)[0], -1])
    assert bound(tables, room_for(tables), chosen) == GOAL // 4


@pytest.mark.parametrize(
    "queue", [each for each in queues() if each[0] not in ("device", "what has come")], ids=lambda queue: queue[0]
)
def test_bounds_know_what_links_come_to_first(queue):
    _, instance, deployment, time_s = queue
    assert simulate(instance, deployment, exact=True).time_s == time_s
    known = [choices_of(instance, group) for group in range(instance.groups)]
    tables = tables_of(instance, known, Fraction(2 * time_s))
    found = bound(tables, room_for(tables), np.array(certain(instance, deployment, known)))
    assert GOAL // 2 - 10 <= found <= GOAL // 2  # each time is rounded down


def test_gradients_that_take_no_time_have_no_beginning():
    """A transfer that is rounded to nothing is none, whatever the link had in the bound before."""
    times_s = {"none": 2.0, "before": 600.0, "late": 1.0, "sink": 1.0}
    operators = [
        {"name": name, "group": group, "times_s": {"v100": [time_s]}}
        for group, (name, time_s) in enumerate(times_s.items())
    ]
    operators[0]["gradient_bytes"] = 300.0
    machine = {"type": "v100", "count": 1, "memory_bytes": 1e12, "bandwidth_bytes_per_s": 1.0}
    instance = DeploymentInstance.from_data(
        {
            "name": "rounded",
            "operators": operators,
            "tensors": [
                {"producer": 1, "consumers": [2], "size_bytes": 1.0},
                {"producer": 2, "consumers": [3], "size_bytes": 1e6},
            ],
            "device_groups": [machine] * 3,
            "bandwidth_bytes_per_s": [[1, 1, 1], [1e14, 1, 1], [1, 1, 1]],
        }
    )
    alone = [GroupPlan(device_groups=(place,), mode="all_reduce") for place in (2, 1, 0)]
    served = GroupPlan(device_groups=(0, 1), mode="parameter_server")
    deployment = Deployment(instance="rounded", groups=(served, *alone))
    time_s = Fraction(simulate(instance, deployment, exact=True).time_s)
    assert 603 < time_s < 604
    known = [choices_of(instance, group) for group in range(4)]
    tables = tables_of(instance, known, 2 * time_s)
    room, chosen = room_for(tables), np.array(certain(instance, deployment, known))
    for _ in range(2):
        assert bound(tables, room, chosen) <= GOAL // 2


def all_plans(instance):
    """Every deployment, as the statement has them, names for the same thing included."""
    of_groups = []
    for members in instance.members:
        own = []
        for chosen in masks(instance):
            devices = instance.devices_of(chosen)
            for split in ("even", "speed"):
                own.append((GroupPlan(device_groups=chosen, mode="parameter_server", split=split), ()))
                sets = itertools.product((0, 1), repeat=len(members)) if len(devices) > 1 else [(0,) * len(members)]
                plan = GroupPlan(device_groups=chosen, mode="all_reduce", split=split)
                own += [(plan, tuple(itertools.compress(members, each))) for each in sets]
            for each in itertools.product(devices, repeat=len(members)):
                own.append((GroupPlan(device_groups=chosen, mode="model_parallel", devices=each), ()))
        of_groups.append(own)
    for groups in itertools.product(*of_groups):
        duplicated = sorted(place for _, places in groups for place in places)
        yield Deployment(instance=instance.name, groups=[plan for plan, _ in groups], duplicated=duplicated)


@for_each("seed", range(24))
def test_the_optimum_is_proven_and_no_more(seed):
    rng = np.random.default_rng(seed)
    memory_bytes = (1e9, 1e9, 60.0)[seed % 3]
    counts = [2] if seed % 2 else [1, 1]
    drawn = {"operators": 3, "groups": 2, "counts": counts, "whole_numbers": seed % 4 < 2}
    instance = random_instance(rng, **drawn, memory_bytes=memory_bytes)
    known = [evaluate_plan(instance, each) for each in all_plans(instance)]
    optimum = Fraction(min((float(each.objective) for each in known if each.feasible), default=1.0))
    order = rng.permutation(instance.groups).tolist()
    below, above = optimum * (1 - Fraction(1, 10**7)), optimum * (1 + Fraction(1, 10**7))
    assert proven(instance, below, order) == below
    if any(each.feasible for each in known):
        with one_line(RefutedError, "there is a plan of 'random' whose step takes"):
            proven(instance, above, order)
    else:
        assert proven(instance, above, order) == above  # nothing fits


@pytest.mark.parametrize("name", ["tiny-g2-m2-s1", "tiny-g3-m2-s2", "tiny-g3-m3-s3"])
def test_bundled_ones_have_proofs_that_hold(name):
    path = certificates.file_of(f"deployment/{name}")
    objective = ddlopt.check(f"deployment/{name}", instances.best(f"deployment/{name}"), exact=True).objective
    found = ddlopt.check_certificate(f"deployment/{name}", path).bound
    assert objective * Fraction(9999, 10_000) <= found <= objective


def test_small_instances_are_certified(monkeypatch, tmp_path):
    anneal_little(monkeypatch)
    instance = random_instance(np.random.default_rng(5), operators=4, groups=2, most_devices=2)
    result, certificate = ddlopt.certify(instance, out=tmp_path / "proof.json.gz", time_limit=100)
    assert isinstance(certificate, PlanCertificate)
    assert (str(result.status), str(result.evidence)) == ("optimal", "certificate")
    assert ddlopt.check_certificate(instance, tmp_path / "proof.json.gz").bound == certificate.claim


def test_orders_go_along_the_graph():
    operators = [{"name": name, "group": 0, "times_s": {"v100": [0.0]}} for name in ("labels", "late", "early")]
    operators[1] |= {"group": 1, "times_s": {"v100": [2.0]}}
    operators[2] |= {"group": 2, "times_s": {"v100": [1.0]}}
    data = TINY.model_dump(mode="json") | {
        "operators": operators,
        "tensors": [{"producer": 2, "consumers": [1], "size_bytes": 1}],
        "device_groups": [{"type": "v100", "count": 2, "memory_bytes": 9, "bandwidth_bytes_per_s": 1}],
        "bandwidth_bytes_per_s": [[1]],
        "shares": [1.0],
    }
    assert orders(DeploymentInstance.from_data(data)) == [[1, 2, 0], [2, 1, 0]]


def test_orders_are_tried_for_longer_and_longer(monkeypatch):
    asked, seconds = [], [0.0]

    def check(certificate, instance, expired):
        began = seconds[0]
        while not expired() and not (certificate.order == [0, 1, 2] and seconds[0] - began == 70):
            seconds[0] += 1
        asked.append((certificate.order, seconds[0] - began))
        return 0

    monkeypatch.setattr(PlanCertificate, "check", check)
    monkeypatch.setattr("ddlopt.frontier.deployment.plan.prove.orders", lambda _: [[2, 1, 0], [0, 1, 2]])
    monkeypatch.setattr("ddlopt.frontier.deployment.plan.prove.process_time", lambda: seconds[0])
    found = prove(TINY, None, GOOD.claim, lambda: False)
    assert found.order == [0, 1, 2]
    assert asked == [([2, 1, 0], 61), ([0, 1, 2], 61), ([2, 1, 0], 241), ([0, 1, 2], 70)]
    assert prove(TINY, None, GOOD.claim, lambda: True) is None


def test_any_order_proves_the_same():
    for order in itertools.permutations(range(3)):
        assert proven(TINY, GOOD.claim, list(order)) == GOOD.claim
    assert proven(TINY, Fraction(-1), [0, 1, 2]) == -1


@for_each(
    "changed, error, line",
    [
        ({"order": [0, 1]}, RefutedError, "the order has 2 groups, but there are 3"),
        ({"claim": "7/100"}, RefutedError, "whose step takes 0.0689810914073 s"),
        ({"order": [0, 1, 1]}, SolutionError, "order has each group from 0 on once"),
        ({"order": [0, 1, 3]}, SolutionError, "order has each group from 0 on once"),
        ({"order": [0, 1, True]}, SolutionError, "order has each group from 0 on once"),
        ({"order": [0, 1, 2.0]}, SolutionError, "order has each group from 0 on once"),
        ({"order": []}, SolutionError, "order is a list of 1 to"),
        ({"order": {"0": 1}}, SolutionError, "order is a list of 1 to"),
        ({"claim": "much"}, SolutionError, "the claim a fraction"),
        ({"more": 1}, SolutionError, "expected the fields"),
        ({"version": 2}, SolutionError, "version is 2"),
    ],
)
def test_what_proves_nothing(changed, error, line):
    with one_line(error, line):
        proofs.check(TINY, PlanCertificate.from_data(json.loads(GOOD.text) | changed))


def test_too_many_choices_are_not_listed():
    large = instances.load("deployment/bert-small-testbed")
    with one_line(NotApplicableError, "choices; 2000 are looked at at most"):
        proven(large, Fraction(1, 100), list(range(large.groups)))
    # A vast claim makes no number overflow: every time is cut off there.
    assert proven(TINY, Fraction(1, 10**300), [0, 1, 2])
    with one_line(RefutedError, "there is a plan"):
        proven(TINY, Fraction(10**300), [0, 1, 2])


def test_long_checks_are_given_up():
    slow = instances.load("deployment/vgg19-testbed-g8")
    claim = Fraction(ddlopt.check(slow, instances.best("deployment/vgg19-testbed-g8"), exact=True).objective)
    certificate = PlanCertificate(slow.name, slow.digest, claim, list(range(slow.groups)))
    with one_line(SolverError, "given up after 0.01 s"):
        ddlopt.check_certificate(slow, certificate, time_limit=0.01)
