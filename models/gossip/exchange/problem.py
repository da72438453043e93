"""The problem ``gossip/exchange``: what belongs to its room, as data."""

from ddlopt.models.gossip.exchange.evaluate import evaluate_exchange
from ddlopt.models.gossip.exchange.instance import ExchangeInstance, ExchangeTimes
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="gossip/exchange",
    title="after which steps a worker sends its model",
    counts="steps",
    limited_by="a budget of sends or of staleness",
    instance=ExchangeInstance,
    solution=ExchangeTimes,
    evaluate=evaluate_exchange,
    bound=later("ddlopt.models.gossip.exchange.bounds:exchange_bound"),
)
