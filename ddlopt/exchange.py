"""Commands that take models to other solvers and bring answers back: ``export``, ``import-solution``, ``submit``."""

from pathlib import Path
from typing import Annotated

import typer

NO_ANSWER = 1

Name = Annotated[
    str, typer.Argument(metavar="NAME|FILE", help="A bundled instance (see `ddlopt list`) or a .json file.")
]
FormulationName = Annotated[
    str, typer.Option(metavar="F", help="An exact method that is a formulation, e.g. rings-and-routes.")
]


def export(
    name: Name,
    formulation: FormulationName,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The model; names go beside it.")],
    to: Annotated[str | None, typer.Option(metavar="KIND", help="mps, lp, nl or json; else FILE's ending.")] = None,
) -> None:
    """Write a formulation of an instance as a file that other solvers read."""
    import ddlopt
    from ddlopt.solvers.backends.files import write_model
    from ddlopt.solvers.catalogue import formulation_named

    instance = ddlopt.load(name)
    for path in write_model(formulation_named(formulation, instance.family), instance, out, to):  # type: ignore[arg-type]
        print(path)


def import_solution(
    name: Name,
    formulation: FormulationName,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="As HiGHS, CBC, SCIP, GLPK or Gurobi write solutions.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the solution here.")] = None,
) -> None:
    """Read another solver's solution of an exported model, and check it."""
    import ddlopt
    from ddlopt.analysis.tables import objective_text
    from ddlopt.models.files import writable, write_whole
    from ddlopt.solvers.backends.files import read_solution
    from ddlopt.solvers.catalogue import formulation_named

    if out:
        writable(out)
    instance = ddlopt.load(name)
    solution = read_solution(formulation_named(formulation, instance.family), instance, file)
    evaluation = ddlopt.check(instance, solution)
    for violation in evaluation.violations:
        print(violation)
    objective = None if evaluation.objective is None else float(evaluation.objective)
    verdict = "feasible" if evaluation.feasible else f"infeasible: {len(evaluation.violations)} violations"
    print(f"{instance.name}: {verdict}, objective {objective_text(objective, instance.objective_unit, digits=12)}")
    if out:
        write_whole(out, solution.to_json() + "\n")
    raise typer.Exit(0 if evaluation.feasible else NO_ANSWER)


def submit(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A bundled instance.")],
    solution: Annotated[Path, typer.Argument(metavar="SOLUTION", help="A .json file, as `solve --out` writes it.")],
) -> None:
    """Keep a solution as the best known one if it is better in exact arithmetic; in a checkout of the library."""
    import ddlopt
    from ddlopt import instances
    from ddlopt.analysis.tables import objective_text
    from ddlopt.models.catalogue import family

    instance = ddlopt.load(name)
    offered = family(instance.family).solution.from_file(solution)
    evaluation = ddlopt.check(instance, offered, exact=True)
    if not evaluation.feasible:
        for violation in evaluation.violations:
            print(violation)
        print(f"{name}: not feasible, so nothing is stored")
        raise typer.Exit(NO_ANSWER)
    shown = objective_text(float(evaluation.objective or 0.0), instance.objective_unit, digits=12)
    if instances.store_best(name, offered):
        print(f"{name}: {shown} is the best known now")
        return
    print(f"{name}: {shown} is not better than what is stored, in exact arithmetic")
    raise typer.Exit(NO_ANSWER)
