"""Times to the target: the best period, the geometric program, AdaComm's formula, communication in each step.

Each cell: seconds to the target (period). With stragglers, also what a plan loses that is best without them.
"""

import ddlopt
from benchmarks.harness import Benchmark, Option, solved
from ddlopt.analysis.gossip_convex.period import GeometricProgram
from ddlopt.instances.generators import generate
from ddlopt.models.gossip import evaluate
from ddlopt.models.gossip.period.instance import PeriodInstance
from ddlopt.solvers.contracts import Limits

METHODS = {
    "best-period": "best-period",
    "geometric-program": GeometricProgram(),
    "adacomm": "adacomm",
    "synchronous": "synchronous",
}


def times(asked):
    """All bundled instances."""
    for name in [each for each in ddlopt.names("gossip") if each.startswith("gossip/period-")][: asked.most]:
        results = {label: solved(method, name, Limits()) for label, method in METHODS.items()}
        first = next(result for result in results.values() if result is not None)
        yield {
            "instance": name.removeprefix("gossip/"),
            "ρ": first.details["mixing"],
            "C": first.details["communication_s"],
            **{each: found and f"{found.objective:.2f} ({found.solution.period:.4g})"
               for each, found in results.items()},
            "proven within": f"{first.gap:.0e}",
        }  # fmt: skip


def stragglers(asked):
    """Steps of eight workers take ten times as long now and then: best periods, what others lose in percent."""
    for ratio in asked.ratios:
        plain = generate("gossip", "period", ratio=ratio, whole=True, name="plain")
        unaware = solved("best-period", plain, Limits())
        for chance in asked.chances:
            slow = generate("gossip", "period", ratio=ratio, slow_chance=chance, name="plain")
            best, adacomm, synchronous = (
                solved(method, slow, Limits()) for method in ("best-period", "adacomm", "synchronous")
            )
            means = PeriodInstance.from_data(
                plain.model_dump(mode="json") | {"compute_s": float(slow.stragglers.limit)}
            )
            average = solved("best-period", means, Limits())
            yield {
                "C": ratio, "slow steps": chance,
                "a step, τ = 1": slow_step(slow, 1), "a step, τ best": best.details["computing_s"],
                "best": f"{best.objective:.0f} ({best.solution.period:.0f})",
                "without": f"{unaware.objective:.0f} ({unaware.solution.period:.0f})",
                "unaware %": loss(slow, unaware, best), "averages %": loss(slow, average, best),
                "adacomm %": loss(slow, adacomm, best), "synchronous %": loss(slow, synchronous, best),
            }  # fmt: skip


def slow_step(instance, period):
    """Seconds of a step until all are done."""
    plan = solved("synchronous", instance, Limits()).solution.model_copy(update={"period": float(period)})
    return evaluate(instance, plan).details["computing_s"]


def loss(instance, found, best):
    """Of a plan, with its period."""
    seconds = evaluate(instance, found.solution).objective
    return f"{100 * (seconds / best.objective - 1):.1f} ({found.solution.period:.0f})"


BENCH = Benchmark(
    times,
    stragglers,
    most=Option(1000, "how many instances", quick=3),
    ratios=Option([4.0, 40.0], "seconds of a communication; a step takes one", quick=[4.0]),
    chances=Option([0.001, 0.01, 0.05, 0.2], "probabilities of a slow step", quick=[0.01]),
)
