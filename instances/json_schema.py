"""JSON Schemas of the files that ddlopt reads and writes."""

import functools
import operator
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from ddlopt.models.catalogue import family, problem

CLUSTER = "cluster-file"
"""In place of a family: the file of a cluster."""
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(family_name: str, solution: bool = False) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a family's instances, or of its solutions.

    In place of a family, ``"gossip/weights"``: of one problem of a family; ``"cluster-file"``: of a cluster's file.

    It describes shapes and ranges; what relates fields to each other (a group's members to the number of servers, say)
    is checked on reading.

    Raises
    ------
    UnknownNameError
        If there is no such family or problem.
    """
    if family_name == CLUSTER:
        from ddlopt.instances.clusters import Cluster

        return {"$schema": DIALECT, **Cluster.model_json_schema(mode="validation")}
    if "/" in family_name:
        one = problem(family_name)
        return {"$schema": DIALECT, **(one.solution if solution else one.instance).model_json_schema(mode="validation")}
    which = family(family_name).solution if solution else family(family_name).instance
    if not which.variants:
        return {"$schema": DIALECT, **which.model_json_schema(mode="validation")}
    told = tuple(which.variants.values())
    problems: Any = functools.reduce(operator.or_, told)
    if len(told) > 1:
        problems = Annotated[problems, Field(discriminator="problem")]
    for path in family(family_name).problems:
        untold = path.solution if solution else path.instance
        if untold not in told:
            # A problem without a field of that name: whatever fits one of them is taken.
            problems = problems | untold
    return {"$schema": DIALECT, **TypeAdapter(problems).json_schema(mode="validation")}
