"""Names that methods had in earlier versions, and how they are written now; they go with the next minor version.

What was a name of its own for one setting of an option is now that option. Records and stores keep the names under
which their runs were made.
"""

import warnings
from collections.abc import Mapping

ALIASES: Mapping[str, Mapping[str, str]] = {
    "topology": {
        "all-rings": "rings-and-routes:rings=all",
        "topology-finder-released": "topology-finder:variant=released",
    },
    "scheduling": {
        "gadget-milp": "gadget:oracle=embedding",
        "gadget-packing": "gadget:oracle=packing",
        "gadget-rounding": "gadget:oracle=rounding",
        "gavel-makespan": "gavel:goal=makespan",
        "gavel-max-min": "gavel:goal=max_min",
    },
    "compression": {
        "espresso-all-sizes": "espresso:thresholds=false",
    },
    "codesign": {
        "alternating-exact": "alternating:strategies=exact,topology=exact",
        "alternating-exact-strategies": "alternating:strategies=exact",
        "alternating-exact-topology": "alternating:topology=exact",
    },
    "deployment": {
        "data-parallel-sfb": "sufficient-factors:search=data-parallel",
        "data-parallel-speed": "data-parallel:split=speed",
        "plan-search-sfb": "sufficient-factors:search=plan-search,how=joint",
        "tag-bound": "tag:prior=bound",
        "tag-learned": "tag:prior=learned",
        "tag-sfb": "sufficient-factors:search=tag",
    },
    "aggregation": {
        "colouring": "register-tree:only_floor=true",
        "demand-slots": "slot-rule:rule=demand",
        "equal-slots": "slot-rule:rule=equal",
        "first-come-slots": "slot-rule:rule=first-come",
        "gradient-slots": "slot-rule:rule=gradient",
        "hot-parameters": "milp",
        "max-min-slots": "slot-rule:rule=max-min",
        "rate-levels-plain": "rate-levels:flows=false",
        "rate-messages-plain": "rate-messages:flows=false",
        "shortest-paths": "none",
        "slot-shares": "slot-prices:solver=clarabel",
        "snake": "heat-round-robin:snake=true",
        "square-root-slots": "slot-rule:rule=square-root",
        "table-milp": "milp",
    },
    "gossip": {
        "fastest-pairwise": "fastest-weights:goal=pairwise",
        "fdla": "fastest-weights:goal=averaging",
        "fixed-period": "exchange-rule:rule=fixed-period",
        "fmmc": "fastest-weights:goal=chain",
        "fmmp": "fastest-weights:goal=process",
        "matcha-edges": "matcha:per_edge=true",
        "norm-threshold": "exchange-rule:rule=norm-threshold",
        "random-times": "exchange-rule:rule=random-times",
        "rate-threshold": "exchange-rule:rule=rate-threshold",
        "relative-threshold": "exchange-rule:rule=relative-threshold",
        "speed-rule": "exchange-rule:rule=speed-rule",
        "sum-rule": "exchange-rule:rule=sum-rule",
        "threshold": "exchange-rule:rule=threshold",
    },
}
"""By family and old name."""

REPLACED: Mapping[str, Mapping[str, str]] = {
    "compression": {"lp": "min-cut"},
    "gossip": {
        "exchange-dynamic": "exchange-times",
        "geometric-program": "best-period",
        "matcha-edges-semidefinite": "matcha:per_edge=true",
        "matcha-semidefinite": "matcha",
        "semidefinite": "fastest-weights",
    },
}
"""Second ways to what another method finds, which tests compare it with: that method. Their classes are still there."""


def present(asked: str, family: str) -> str:
    """How a method is written now: ``gadget:oracle=packing,slot_limit_s=3`` for ``gadget-packing:slot_limit_s=3``."""
    name, _, settings = asked.partition(":")
    found = ALIASES.get(family, {}).get(name) or REPLACED.get(family, {}).get(name)
    if found is None or not settings:
        return found or asked
    return f"{found}{',' if ':' in found else ':'}{settings}"


def told(asked: str, family: str) -> str:
    """The same, and a ``FutureWarning`` where that is another name."""
    now = present(asked, family)
    if now != asked:
        message = f"the method '{asked}' of {family} is written '{now}' now; the old name goes with the next version"
        warnings.warn(message, FutureWarning, stacklevel=2)
    return now
