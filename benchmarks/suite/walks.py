"""How far a reader walks from a command to the method that answers it: files, rooms and returns, counted as it runs.

A stay is an unbroken time in one file of ours, on the way of calls and returns; a return is a stay in a file that was
left before. Rooms are folders. What is imported on the way is left out, and so is what happens once the method solves.
The method itself, from where it begins to its result, is a walk of its own.
"""

import subprocess
import sys

from benchmarks.harness import ROOT, Benchmark, Option

CODE = """
import contextlib, io, os, sys
from ddlopt.cli import run

root, words = sys.argv[1] + os.sep, sys.argv[2:]
stays = {"before": [], "within": []}

class Left(Exception):
    pass

def note(frame, event, argument):
    name = frame.f_code.co_filename
    if event not in ("call", "return") or not name.startswith(root) or frame.f_code.co_name == "<module>":
        return
    path = os.path.relpath(name, root)
    where = "within" if depth else "before"
    if event == "call" and frame.f_code.co_name == "solve" and "self" in frame.f_locals and path.startswith("solvers"):
        depth.append(frame)
        where = "within"
    if not stays[where] or stays[where][-1] != path:
        stays[where].append(path)
    if event == "return" and depth and frame is depth[-1]:
        depth.pop()
        if not depth:
            sys.setprofile(None)

depth = []
sys.setprofile(note)
with contextlib.redirect_stdout(io.StringIO()):
    run(words)
sys.setprofile(None)
for where, found in stays.items():
    print(where, len(found), len(set(found)), len({os.path.dirname(each) for each in found}),
          len(found) - len(set(found)), sep="\\t")
"""
COMMANDS = (
    "solve topology/dlrm-n12-d4",
    "solve topology/hybrid-n16-d4-s1 --method link-exchange",
    "solve topology/tiny-n4-d2",
)


def walks(asked):
    """Rows for each command: before the method begins, and within it."""
    for words in COMMANDS[: asked.most]:
        run = subprocess.run(
            [sys.executable, "-c", CODE, str(ROOT), *words.split()],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
        for line in run.stdout.splitlines():
            where, *counts = line.split("\t")
            names = ("stays", "files", "rooms", "returns")
            yield {"command": words, "part": where} | dict(zip(names, counts, strict=True))


BENCH = Benchmark(walks, most=Option(len(COMMANDS), "how many commands", quick=1))
