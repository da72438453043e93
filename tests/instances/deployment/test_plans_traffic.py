"""The bundled topology instances that are the traffic of plans."""

import pytest

from ddlopt.instances.library.topology import plans
from ddlopt.models.deployment.step.evaluate import evaluate_step


@pytest.mark.parametrize("expert", plans.PLANS)
def test_their_plans_are_feasible_and_send_to_the_servers_of_their_experts(expert):
    whole, plan = plans.step_instance(), plans.plan(expert)
    assert evaluate_step(whole, plan).feasible
    job = next(each for each in plans.instances() if each.name == f"experts-n16-d8-e{expert}")
    assert (job.servers, job.degree) == (16, 8)
    # Experts of one server send each other nothing over links; others most of all that is sent but copies' state.
    pairs = job.traffic_bytes > 0
    near = {(a, b) for a in range(16) for b in range(16) if a != b and a // 4 == b // 4}
    if expert == 8:
        assert pairs.sum() == 2 * 2 * 7
    else:
        assert all(pairs[pair] for pair in near)
        assert pairs.sum() == (16 * 15 if expert == 128 else len(near) + 16)


@pytest.mark.slow
@pytest.mark.parametrize("expert", plans.PLANS)
def test_their_plans_are_the_fastest_of_the_degree(expert):
    from ddlopt.solvers.contracts import Limits
    from ddlopt.solvers.deployment.step.enumeration import Search, Space
    from ddlopt.solvers.heuristic import Clock

    whole = plans.step_instance()
    search = Search(whole, Space(expert=(expert,)), Clock(Limits(), None))
    search.run()
    found = evaluate_step(whole, plans.plan(expert)).objective
    assert found == pytest.approx(search.best_s, rel=1e-9)
