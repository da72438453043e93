"""Pictures of periods."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from volume import slow

import ddlopt
from ddlopt.analysis.pictures.gossip.period import draw
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits

mpl.use("Agg")


@pytest.mark.parametrize("name", ["period-m8-step", slow("period-m16-two-valleys"), slow("period-cvx-m8")])
def test_the_plan_is_on_the_curve(name):
    instance = ddlopt.load(f"gossip/{name}")
    found = method("best-period", "gossip").solve(instance, Limits())
    figure, axes = plt.subplots()
    draw(axes, instance, found.solution)
    curve, plan = axes.lines[0], axes.lines[-1]
    assert list(plan.get_ydata()) == [pytest.approx(found.objective)]
    assert min(curve.get_ydata()) >= found.objective * (1 - 1e-4)
    assert axes.get_xlabel() == "period τ (steps)"
    plt.close(figure)
