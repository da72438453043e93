"""The command ``submit``: makes a file that is handed in, or takes such files into the library."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from ddlopt.cli.shared import completion
from ddlopt.cli.shared.arguments import NO_ANSWER, say, tell
from ddlopt.cli.shared.judged import news_of

_NEEDED = ("method", "author", "licence")


def submit(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="A bundled instance.", autocompletion=completion.instances),
    ] = None,
    solution: Annotated[
        Path | None, typer.Argument(metavar="[SOLUTION]", help="A .json file, as `solve --out` writes it.")
    ] = None,
    method: Annotated[str | None, typer.Option(metavar="TEXT", help="How it was found: a method, a paper.")] = None,
    author: Annotated[str | None, typer.Option(metavar="TEXT", help="Author, as the table will show it.")] = None,
    licence: Annotated[
        str | None, typer.Option("--licence", "--license", metavar="SPDX", help="E.g. CC0-1.0, CC-BY-4.0, Apache-2.0.")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A proof of a bound, with or without a solution.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="The file to make; else NAME.submission.json.")
    ] = None,
    take: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Take what is better in this file into the library; may be repeated."),
    ] = None,
    store: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Take over the best of all that `ddlopt bench` found.")
    ] = None,
) -> None:
    """Make one file of a better solution or bound, to be handed in by pull request.

    `ddlopt check FILE` checks such a file. With --take or --store, in a checkout of the library: keep what is better
    than the best known in exact arithmetic, and bring records and index up to date.
    """
    given = [name, solution, method, author, licence, certificate, out]
    if take or store is not None:
        if any(each is not None for each in given) or (take and store is not None):
            raise typer.BadParameter("--take FILE and --store FILE take nothing else")
        _take(take) if take else _take_store(store)  # type: ignore[arg-type]
        return
    if name is None or (solution is None and certificate is None):
        raise typer.BadParameter("give NAME and SOLUTION or --certificate FILE; or --take FILE, or --store FILE, alone")
    missing = [f"--{field}" for field, value in zip(_NEEDED, (method, author, licence), strict=True) if not value]
    if missing:
        verb = "are" if len(missing) > 1 else "is"
        raise typer.BadParameter(f"{', '.join(missing)} {verb} needed: the table says how it was found and whose it is")
    _make(name, solution, certificate, out, method=method, author=author, licence=licence)


def _make(name: str, solution: Path | None, certificate: Path | None, out: Path | None, **who: Any) -> None:
    from ddlopt import instances
    from ddlopt.analysis import submissions
    from ddlopt.models.files import writable, write_whole

    full = instances.full_name(name)
    file = Path(f"{full.replace('/', '--')}.submission.json") if out is None else out
    writable(file)
    made = submissions.made(full, solution, certificate, **who)
    write_whole(file, made.text)
    instance = instances.load(full)
    for line in news_of(instance, made):
        say(line)
    say(f"written: {file}")


def _take(files: Iterable[Path]) -> None:
    from ddlopt.analysis import submissions

    read = [submissions.read(file) for file in files]  # all of them, before the first one is taken
    if not _told(news for each in read for news in submissions.take(each)):
        say("nothing in it is better than what the library has, in exact arithmetic")


def _take_store(store: Path) -> None:
    from ddlopt.analysis.bench.store import Store
    from ddlopt.analysis.records import take_over

    with Store(store, write=False) as opened:
        if not _told(take_over(opened)):
            say(f"nothing in {store} is better than what the library has")


def _told(news: Iterable[Any]) -> bool:
    """Tell what is new and bring the index up to date; whether anything is new."""
    from ddlopt.analysis.index import write_index

    refused = changed = False
    try:
        for each in news:
            (tell if each.refused else say)(each.text)
            refused, changed = refused or each.refused, changed or not each.refused
    finally:
        write_index()
    if refused:
        raise typer.Exit(NO_ANSWER)
    return changed
