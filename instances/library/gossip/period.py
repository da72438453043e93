"""Bundled instances of the problem ``period``."""

from collections.abc import Iterator

from ddlopt.instances.generators.gossip import generate
from ddlopt.instances.generators.gossip.graphs import ABILENE, CVX_EXAMPLE, ZOO
from ddlopt.instances.generators.gossip.period import matchings_of
from ddlopt.models.gossip import GossipProblem, Network
from ddlopt.models.gossip.period.instance import PeriodInstance, Rounds


def instances() -> Iterator[GossipProblem]:
    """All bundled instances of the problem ``period``."""
    yield generate("period", step_size=0.05, name="period-m8-step")
    yield generate("period", step_size=0.05, whole=True, name="period-m8-step-whole")
    for mixing in (0.2, 0.6538, 0.9):
        name = f"period-m8-rho{round(100 * mixing)}"
        yield generate("period", mixing=mixing, name=name)
    yield generate("period", workers=16, mixing=0.0, ratio=40.0, whole=True, name="period-m16-two-valleys")
    yield _posynomial()
    yield generate("period", 1, workers=16, shape="torus", name="period-torus-m16")
    yield generate("period", 1, workers=16, shape="regular", uneven=2.0, name="period-regular-m16-uneven")
    yield generate("period", slow_chance=0.01, name="period-m8-stragglers")
    slow = {"spread": 1.0, "slow_chance": 0.05}
    yield generate("period", 1, workers=16, ratio=40.0, shape="torus", **slow, name="period-torus-m16-stragglers")
    for name, nodes, edges, source in (
        ("period-cvx-m8", 8, CVX_EXAMPLE, "graph of the examples 'graph_laplacian' of CVX (M. Grant, S. Boyd)"),
        ("period-abilene-m11", 11, ABILENE, ZOO),
    ):
        network = Network(nodes=nodes, edges=edges)
        matchings = matchings_of(network)
        times = tuple(float(1 + place) for place in range(len(matchings)))
        rounds = Rounds(network=network, matchings=matchings, times_s=times)
        yield PeriodInstance(name=name, source=source, workers=nodes, compute_s=1.0, target=0.05, rounds=rounds)


def _posynomial() -> GossipProblem:
    given = generate("period", mixing=0.2, name="period-m8-posynomial")
    return PeriodInstance.from_data(given.model_dump(mode="json") | {"deviation": "posynomial"})
