"""Learned priors of ``tag``: what makes them from a rater. They are announced in ``ddlopt.analysis.lab.steps``."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ddlopt.analysis.lab.plan_prior.features import features
from ddlopt.analysis.lab.plan_prior.graph import Inputs, StateGraph
from ddlopt.analysis.lab.plan_prior.graph_network import log_probabilities
from ddlopt.analysis.lab.plan_prior.network import Weights, probabilities, trained
from ddlopt.solvers.deployment.plan.priors import Prior, State, TablePrior
from ddlopt.solvers.deployment.plan.rater import PlanRater
from ddlopt.solvers.heuristic import Clock

Floats = npt.NDArray[np.float64]

GRAPH_WEIGHTS = "graph_weights.npz"


class GraphPrior(Prior):
    """What a graph network says of states, which it sees with their simulated step."""

    def __init__(self, rater: PlanRater, weights: Weights) -> None:
        self.graph = StateGraph(rater)
        self._weights = {name: np.asarray(each, np.float32) for name, each in weights.items()}

    def tables(self, states: Sequence[State]) -> Floats:
        """One run of the network for all states."""
        inputs = self.graph.inputs([self.graph.see(*state) for state in states])
        single = Inputs(*(np.asarray(each, np.float32) for each in inputs))
        table = np.exp(log_probabilities(np, self._weights, single).astype(np.float64))
        probability: Floats = table / table.sum(axis=-1, keepdims=True)
        return probability


def learned(rater: PlanRater, _: Clock) -> TablePrior:
    """What a small graph network says, which was trained on other networks and devices (``train_small``)."""
    return TablePrior(probabilities(trained(), features(rater.instance, rater.actions)))


def graph(rater: PlanRater, _: Clock) -> GraphPrior:
    """What the larger network says, with the weights of the package."""
    return GraphPrior(rater, trained(GRAPH_WEIGHTS))
