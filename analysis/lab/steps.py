"""What studies add to searches: the entry point ``ddlopt.exact``. What is behind a step is loaded when it is asked."""

from ddlopt.models.problem import later
from ddlopt.solvers.chain import Step

_PRIORS = "ddlopt.analysis.lab.plan_prior"
STEPS = (
    Step("deployment/tag", "bound", later(f"{_PRIORS}.bound_prior:from_bound")),
    Step("deployment/tag", "learned", later(f"{_PRIORS}.priors:learned")),
    Step("deployment/tag", "graph", later(f"{_PRIORS}.priors:graph"), (f"{_PRIORS}.feedback",)),
)
