"""Runs a benchmark, all of them, or tells which there are.

python benchmarks                                 what there is
python benchmarks FAMILY/NAME [ARGUMENT …]        one; --help tells its arguments
python benchmarks all [ARGUMENT …]                one after the other, each in a process of its own
"""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[0] = str(HERE.parent)
# Threads of linear algebra that wait for each other would count as work; this must be said before NumPy is imported.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")


def names() -> list[str]:
    """Every benchmark, by family; what has no ``BENCH`` is a part of one that has."""
    found = sorted(HERE.glob("*/*.py"))
    return [f"{path.parent.name}/{path.stem}" for path in found if "\nBENCH = " in path.read_text(encoding="utf-8")]


def main(words: list[str]) -> int:
    """The exit code: 0 done or nothing to be done here, 1 no answer, 2 bad input."""
    from benchmarks.harness import Skipped
    from ddlopt.models.errors import DdloptError

    known = names()
    if not words or words[0] in ("-h", "--help"):
        print(__doc__)
        for name in known:
            print(f"{name:32} {_module(name).__doc__.partition(chr(10))[0]}")
        return 0
    if words[0] == "all":
        return max(_apart(name, words[1:]) for name in known if _module(name).BENCH.in_all)
    name = words[0].removesuffix(".py")
    if name not in known:
        print(f"there is no benchmark {name}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    module = _module(name)
    try:
        module.BENCH.run(words[1:], name, module.__doc__)
    except Skipped as missing:
        print(f"{name}: left out, {missing}", file=sys.stderr)
    except DdloptError as problem:
        print(f"{name}: {problem}", file=sys.stderr)
        return 1
    return 0


def _module(name: str):
    return import_module(f"benchmarks.{name.replace('/', '.')}")


def _apart(name: str, words: list[str]) -> int:
    print(f"\n# {name}\n", flush=True)
    return subprocess.run([sys.executable, HERE, name, *words], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
