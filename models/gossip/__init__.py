"""Who averages with whom, with which weights, and how often."""

from ddlopt.models.gossip.circulant.instance import CirculantGraph, CirculantInstance
from ddlopt.models.gossip.exchange.instance import ExchangeInstance, ExchangeTimes
from ddlopt.models.gossip.family import GossipAnswer, GossipProblem
from ddlopt.models.gossip.matchings.instance import MatchingPlan, MatchingsInstance
from ddlopt.models.gossip.network import Network
from ddlopt.models.gossip.period.instance import PeriodInstance, PeriodPlan, Rounds
from ddlopt.models.gossip.weights.instance import GossipWeights, WeightsInstance
from ddlopt.models.problem import Family, records

__all__ = [
    "FAMILY",
    "PROBLEMS",
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
    "bound",
    "evaluate",
]

PROBLEMS = records(
    "ddlopt.models.gossip.weights.problem",
    "ddlopt.models.gossip.matchings.problem",
    "ddlopt.models.gossip.period.problem",
    "ddlopt.models.gossip.exchange.problem",
    "ddlopt.models.gossip.circulant.problem",
)
FAMILY = Family.of_several(
    "gossip",
    "gossip: who averages with whom, with which weights, and how often",
    GossipProblem,
    GossipAnswer,
    PROBLEMS,
)
evaluate, bound = FAMILY.evaluate, FAMILY.bound
