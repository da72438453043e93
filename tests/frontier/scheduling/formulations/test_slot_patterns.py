"""Patterns of speeds and plans in one piece against trying everything, and in what they refuse."""

import numpy as np
import pyomo.environ as pyo
import pytest
from scheduling_brute_force import brute_force, job_rates, random_instance
from volume import for_each, some

from ddlopt.frontier.scheduling.formulations.one_piece.one_piece import OnePiece
from ddlopt.frontier.scheduling.formulations.slot_patterns.listing import listing, undominated
from ddlopt.frontier.scheduling.formulations.slot_patterns.options import least_rings, options
from ddlopt.frontier.scheduling.formulations.slot_patterns.slot_patterns import SlotPatterns
from ddlopt.instances.generators.scheduling import generate
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.scheduling import Network, SchedulingInstance, evaluate
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.backends.matrix import linear_model
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import build_model

FINISHING = ("all_or_nothing", "logarithmic", "capped")
FEATURES = {
    "contention": {"contention": True},
    "contention-energy": {"contention": True, "energy": True, "utilities": FINISHING},
    "contention-windows": {"contention": True, "deadlines": True, "min_workers": True, "latency": True, "uneven": True},
    "mesh": {"network": "mesh"},
    "mesh-windows": {"network": "mesh", "deadlines": True, "pollux": True, "utilities": FINISHING},
    "star-energy": {"network": "star", "energy": True},
    "uneven": {"uneven": True},
}
OBJECTIVES = ("utility", "max_min", "makespan", "completion")
CASES = [
    (feature, objective, preemptive, seed)
    for feature in FEATURES
    for objective in OBJECTIVES
    for preemptive in (True, False)
    for seed in range(5)
]


def drawn(feature, objective="utility", preemptive=True, seed=0):
    sizes = {"jobs": 3, "slots": 3, "places": (2, 1, 1)}
    given = {"objective": objective, "preemptive": preemptive}
    return random_instance(np.random.default_rng(seed), **sizes, **given, **FEATURES[feature])


def formulation_of(instance):
    return SlotPatterns() if instance.preemptive else OnePiece()


def solved(instance):
    """(model, outcome, evaluation); None if there is no schedule."""
    formulation = formulation_of(instance)
    assert formulation.refuses(instance) is None
    try:
        model = build_model("scheduling", formulation, instance)
    except InfeasibleError:
        return None
    outcome = Highs({"mip_feasibility_tolerance": 1e-8}).solve(model, Limits(gap=1e-6, time_s=60))
    if outcome.status is Status.INFEASIBLE:
        return None
    return model, outcome, evaluate(instance, formulation.read(model.scheduling, instance))


@for_each(
    "feature, objective, preemptive, seed",
    some(CASES, [(feature, OBJECTIVES[k % 4], bool(k % 3), k % 5) for k, feature in enumerate([*FEATURES] * 2)]),
)
def test_the_optimum_is_that_of_trying_everything(feature, objective, preemptive, seed):
    instance = drawn(feature, objective, preemptive, seed)
    best, found = brute_force(instance), solved(instance)
    if best is None or found is None:
        assert best is found
        return
    _, outcome, evaluation = found
    assert evaluation.violations == ()
    assert float(evaluation.objective) == pytest.approx(best.objective, rel=3e-5, abs=1e-9)
    bound = formulation_of(instance).objective_value(instance, outcome.bound)
    sign = 1 if instance.sense == "maximize" else -1
    assert sign * (bound - best.objective) >= -1e-6 * abs(best.objective) - 1e-9
    assert bound == pytest.approx(best.objective, rel=6e-5, abs=1e-8)


@for_each("feature, preemptive", [(feature, preemptive) for feature in FEATURES for preemptive in (True, False)])
def test_it_starts_from_the_best_schedule(feature, preemptive):
    instance = drawn(feature, preemptive=preemptive)
    best = brute_force(instance)
    formulation = formulation_of(instance)
    model = build_model("scheduling", formulation, instance)
    formulation.start(model.scheduling, instance, best.schedule)
    chosen = model.scheduling.times if preemptive else model.scheduling.plan
    for variable in chosen.values():
        variable.fix(variable.value)
    outcome = Highs().solve(model, Limits(gap=1e-6, time_s=60))
    assert outcome.status is Status.OPTIMAL
    read = evaluate(instance, formulation.read(model.scheduling, instance))
    assert read.violations == ()
    assert float(read.objective) == pytest.approx(best.objective, rel=3e-5)


@for_each("feature, preemptive", [("contention", True), ("contention", False), ("mesh", True), ("mesh", False)])
def test_two_builds_are_the_same(feature, preemptive):
    instance = drawn(feature, "completion", preemptive, 1)
    one, other = (linear_model(build_model("scheduling", formulation_of(instance), instance)) for _ in range(2))
    for name, values in vars(one).items():
        if isinstance(values, np.ndarray):
            assert (values == getattr(other, name)).all(), name


@for_each("seed", range(20))
def test_a_listing_has_no_slower_pattern_than_any_choice(seed):
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, jobs=4, slots=2, places=(2, 2, 2), contention=True, arrivals=False)
    found = listing(instance, (0, 1, 2, 3))
    each = [[None, *options(instance, job)] for job in range(4)]
    wanted = np.array([job.minibatches for job in instance.jobs])
    for _ in range(200):
        picked = [row[rng.integers(len(row))] for row in each]
        taken = [sum(dict(one.workers).get(s, 0) for one in picked if one) for s in range(3)]
        if max(taken) <= 2:
            gains = np.minimum(job_rates(instance, picked), wanted)
            assert (found.gains >= gains - 1e-12).all(axis=1).any()
    for gains, chosen in zip(found.gains, found.chosen, strict=True):
        # What is listed is no promise that the places do not keep.
        assert (np.minimum(job_rates(instance, chosen), wanted) >= gains * (1 - 1e-12)).all()


def test_the_relaxation_over_patterns_of_whole_workers():
    """Three jobs of two workers on three places: one at a time, whatever the area says."""
    instance = random_instance(np.random.default_rng(0), jobs=3, slots=2, places=(3,), arrivals=False)
    job = instance.jobs[0].model_copy(update={"min_workers": 2, "max_workers": 2, "minibatches": 1e-3})
    alike = instance.model_copy(update={"jobs": (job,) * 3, "objective": "max_min"})
    model = build_model("scheduling", SlotPatterns(), alike)
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(model)
    assert Highs().solve(model, Limits()).objective == pytest.approx(2 / 3)


def test_a_host_model_can_ask_for_patience():
    """Ports: no more than one slot of the three in which job 0 runs."""
    instance = drawn("contention")
    model = build_model("scheduling", SlotPatterns(), instance)
    block, free = model.scheduling, solved(instance)
    lists = [listing(instance, jobs) for jobs in _jobs_of_intervals(instance)]
    busy = [(k, p) for k, p in block.USES if 0 in lists[k].jobs and lists[k].gains[p, lists[k].jobs.index(0)]]
    model.patience = pyo.Constraint(expr=sum(block.times[key] for key in busy) <= 1)
    outcome = Highs().solve(model, Limits(gap=1e-6))
    schedule = SlotPatterns().read(block, instance)
    assert sum(run.slots for run in schedule.runs if run.job == 0) <= 1
    assert outcome.objective < free[1].objective


def _jobs_of_intervals(instance):
    from ddlopt.frontier.scheduling.intervals import intervals

    return [span.jobs for span in intervals(instance)]


def test_least_rings_on_a_graph_with_a_cycle():
    links = ((0, 3, 1.0), (1, 4, 1.0), (2, 5, 1.0), (3, 4, 1.0), (4, 5, 1.0), (5, 3, 1.0))
    network = Network(switches=3, links=links)
    rings = least_rings(network, (0, 1))
    # Over the link between the two switches and back, around the cycle in either direction, or the long way and back.
    assert sorted(sum(times for _, times in passes) for _, passes in rings) == [6, 7, 7, 8]
    for walk, passes in rings:
        assert {0, 1} <= set(walk)
        assert not any(dict(other).items() <= dict(passes).items() and other != passes for _, other in rings)


def test_speed_is_that_of_the_check():
    instance = drawn("contention-windows", seed=2)
    rules = instance.contention
    job = instance.jobs[0]
    at_once = max(1.0, rules.share * 3)
    bandwidth = rules.between_servers_bytes_per_s / (at_once + rules.degradation * (at_once - 1))
    expected = 2 * instance.slot_s / (float(job.timing.iteration_s(2, bandwidth)) + 2 * rules.server_overhead_s)
    assert instance.rate(0, 2, 2, 3) == pytest.approx(expected)


def test_undominated_rows():
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [0.0, 0.0]])
    assert undominated(rows).tolist() == [0, 1, 3]


def test_refusals():
    contended = drawn("contention")
    assert "one piece" in SlotPatterns().refuses(drawn("contention", preemptive=False))
    assert "preemptive" in OnePiece().refuses(contended)
    shared = generate("small", 0, limited_by="sharing")
    assert "shared" in SlotPatterns().refuses(shared)
    assert "shared" in OnePiece().refuses(shared.model_copy(update={"preemptive": False}))
    many = generate("contended", 0, jobs=20, slots=4)
    assert "at most" in SlotPatterns().refuses(many)
    wide = generate("elastic", 0, jobs=8, slots=2, gpus=64)
    assert "servers" in SlotPatterns().refuses(wide) or "more than" in SlotPatterns().refuses(wide)
    assert "placements" in OnePiece().refuses(generate("sjf-bco", 0))
    assert "plans" in OnePiece().refuses(generate("small", 2, limited_by="contention", slots=300, preemptive=False))


def test_what_the_check_lets_pass_is_a_pattern():
    """Workers take 1e-9 less than half a part too much: two fit on a server, and the job runs."""
    row = {"name": "a", "max_workers": 2, "min_workers": 2, "minibatches": 1.0, "demand": {"gpu": 1 + 4e-10}}
    timing = {"kind": "ring", "gradient_bytes": 0.0, "bandwidth_bytes_per_s": 1.0, "forward_s_per_sample": 1.0}
    instance = SchedulingInstance.from_data(
        {
            "name": "tight", "slots": 1, "slot_s": 1.0, "objective": "makespan",
            "servers": [{"count": 1, "capacity": {"gpu": 2.0}}], "jobs": [row | {"timing": timing}],
        }
    )  # fmt: skip
    assert [each for (each,) in listing(instance, (0,)).chosen if each is not None]
