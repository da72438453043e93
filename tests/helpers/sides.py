"""What the two sides of a broken rule are, where the rule says so: none where one is needed, two where one may be.

Every violation that is made in any test is held against the table, so that no test need say it again.
"""

import functools

from ddlopt.models.contracts import Violation

SIDES = {
    "a gang is within its level": (None, 1),
    "a job has a plan for its servers": (None, 0),
    "a job that is done has no servers": (None, 0),
    "a job has hosts where it is": (None, 1),
    "a matching that is not given": (None, 0),
    "a matrix is for averaging and chains": (None, 0),
    "a parameter is on one switch": (None, 1),
    "a plan is used": (0, 1),
    "a workload has one plan a width": (None, 1),
    "all iterations are done": (None, 0),
    "blocks have these degrees": (0, 1),
    "all-to-all has one path a tree": (None, 1),
    "bucket_has_one_kind_of_option": (None, 1),
    "degrees are positive": (None, 1),
    "duplicated_operator_has_replicas_that_all_reduce": (None, 2),
    "each device is visited once": (None, 0),
    "edges of a matching at a node": (None, 1),
    "every gang is placed": (0, None),
    "every job runs": (None, 1),
    "every layer is in one stage": (None, 1),
    "every pass runs once": (None, 1),
    "every stage has a layer": (0, 1),
    "forbidden pair": (1, 0),
    "gradients_may_be_fused": (None, 1),
    "job that falls back has a server": (1, 0),
    "matchings of an edge": (None, 1),
    "messages that meet are aggregated": (None, 1),
    "more than all is given away": (None, 1),
    "more than one matching in a round": (None, 1),
    "no pass waits for itself": (1, 0),
    "node runs on its device": (0, 1),
    "nodes of one colour are on one device": (None, 1),
    "nodes on the way forward": (0, 1),
    "only experts have an expert degree": (None, 1),
    "operator_can_be_duplicated": (1, 0),
    "options are those of the block": (0, 1),
    "options are those of the menu": (0, 1),
    "passes are known": (0, 1),
    "path follows links": (0, 1),
    "period below one step": (None, 1),
    "places are in a fabric": (None, 0),
    "probability below 0": (None, 0),
    "rate is positive": (None, 0),
    "recomputed blocks are beside the first option": (1, 0),
    "route follows links": (0, 1),
    "route leads somewhere": (None, 2),
    "runs have ranks": (None, 1),
    "sets that run as one do not wait for each other": (None, 0),
    "slots are not negative": (None, 0),
    "step size not above 0": (None, 0),
    "strategy_exists": (0, None),
    "sum of a row": (None, 1),
    "sum of probabilities": (None, 1),
    "the order is allowed": (0, None),
    "there is a plan": (0, 1),
    "there is nothing to plan": (1, 0),
    "weight below 0": (None, 0),
    "weight where there is no edge": (None, 0),
    "widths are choices": (None, 0),
    "workers never agree: mixing": (None, 1),
}
"""Left and right side by rule; None is what depends on the answer."""


def watch():
    """Look at every violation from now on."""
    made = Violation.__init__

    @functools.wraps(made)
    def watched(self, kind, where, lhs, rhs):
        for side, wanted in zip((lhs, rhs), SIDES.get(kind, (None, None)), strict=True):
            assert wanted is None or side == wanted, f"{kind} at {where}: {lhs} against {rhs}"
        made(self, kind, where, lhs, rhs)

    Violation.__init__ = watched
