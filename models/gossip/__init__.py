"""Who averages with whom, with which weights, and how often."""

from ddlopt.models.gossip.circulant.instance import CirculantGraph, CirculantInstance
from ddlopt.models.gossip.evaluate import evaluate
from ddlopt.models.gossip.exchange.instance import ExchangeInstance, ExchangeTimes
from ddlopt.models.gossip.family import GossipAnswer, GossipProblem
from ddlopt.models.gossip.matchings.instance import MatchingPlan, MatchingsInstance
from ddlopt.models.gossip.network import Network
from ddlopt.models.gossip.period.instance import PeriodInstance, PeriodPlan, Rounds
from ddlopt.models.gossip.weights.instance import GossipWeights, WeightsInstance

__all__ = [
    "CirculantGraph",
    "CirculantInstance",
    "ExchangeInstance",
    "ExchangeTimes",
    "GossipAnswer",
    "GossipProblem",
    "GossipWeights",
    "MatchingPlan",
    "MatchingsInstance",
    "Network",
    "PeriodInstance",
    "PeriodPlan",
    "Rounds",
    "WeightsInstance",
    "evaluate",
]
