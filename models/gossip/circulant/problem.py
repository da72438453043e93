"""The problem ``gossip/circulant``: what belongs to its room, as data."""

from ddlopt.models.gossip.circulant.evaluate import evaluate_circulant
from ddlopt.models.gossip.circulant.instance import CirculantGraph, CirculantInstance
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="gossip/circulant",
    title="which circulant graph averages fastest",
    counts="workers",
    limited_by="links of each worker",
    instance=CirculantInstance,
    solution=CirculantGraph,
    evaluate=evaluate_circulant,
    bound=later("ddlopt.models.gossip.circulant.bounds:circulant_bound"),
)
