"""Writes the bundled instances: ``python -m ddlopt.instances.library.make [FAMILY …]``.

Those of a problem are the ``instances()`` of ``ddlopt.instances.library.<path>``, where everything is derived; running
it again changes nothing.
"""

import argparse
import json
from collections.abc import Iterator

from ddlopt.instances.library import library_folder
from ddlopt.models.catalogue import FAMILY_NAMES
from ddlopt.models.catalogue import family as family_of
from ddlopt.models.contracts import Instance
from ddlopt.models.files import write_whole


def made(family: str) -> Iterator[Instance]:
    """All bundled instances of a family, as derived."""
    for problem in family_of(family).problems:
        library = problem.module("instances.library")
        if library is not None:
            yield from library.instances()


def text_of(instance: Instance) -> str:
    """JSON with a line for each field, and for each row of a matrix or member of a list."""
    lines = []
    for key, value in instance.model_dump(mode="json").items():
        if isinstance(value, list) and value:
            inner = ",\n  ".join(json.dumps(item, ensure_ascii=False) for item in value)
            written = f"[\n  {inner}\n ]"
        else:
            written = json.dumps(value, ensure_ascii=False)
        lines.append(f" {json.dumps(key)}: {written}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> None:
    """Command line: the families whose files are written."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", metavar="FAMILY", help="(default: all)")
    wanted = parser.parse_args().families or FAMILY_NAMES
    for name in wanted:
        if name not in FAMILY_NAMES:
            parser.error(f"there is no family '{name}'; there are: {', '.join(FAMILY_NAMES)}")
    for name in wanted:
        folder = library_folder(name)
        for instance in made(name):
            write_whole(folder / f"{instance.name}.json", text_of(instance))


if __name__ == "__main__":
    main()
