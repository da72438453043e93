"""The command ``warm-up``."""

from typing import Annotated

import typer

from ddlopt.cli.shared.arguments import tell


def warm_up(
    wanted: Annotated[
        list[str] | None, typer.Argument(metavar="[FAMILY|METHOD…]", help="Only for these; everything by default.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Modules at a time; by default one a core.")
    ] = None,
) -> None:
    """Compile ahead the kernels that methods compile before their first solve; they are kept on disk."""
    from ddlopt.analysis.warm_up import kernel_modules, warm_up

    modules = kernel_modules(wanted or ())
    compiled = warm_up(modules, jobs, each=tell)
    print(f"{compiled} of {len(modules)} modules of kernels were compiled, the others were ready")
