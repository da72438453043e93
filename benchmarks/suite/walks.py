"""How far a reader walks from a command to the method that answers it: files, rooms and returns, counted as it runs.

A stay is an unbroken time in one file of ours, on the way of calls and returns; a return is a stay in a file that was
left before. Rooms are folders. What is imported on the way is left out, and so is what happens once the method solves.
The method itself, from where it begins to its result, is a walk of its own. ``build`` is what a host does that embeds a
formulation; of ``certify`` the whole is counted, method and proof.
"""

import subprocess
import sys

from benchmarks.harness import ROOT, Benchmark, Option

CODE = """
import contextlib, io, os, sys, tempfile
from ddlopt.cli import run

root, words = sys.argv[1] + os.sep, sys.argv[2:]
split = words[0] == "solve"
stays = {"before": [], "within": []} if split else {"whole": []}

def note(frame, event, argument):
    name = frame.f_code.co_filename
    if event not in ("call", "return") or not name.startswith(root) or frame.f_code.co_name == "<module>":
        return
    path = os.path.relpath(name, root)
    where = ("within" if depth else "before") if split else "whole"
    begins = event == "call" and frame.f_code.co_name == "solve" and "self" in frame.f_locals
    if split and begins and path.startswith("solvers"):
        depth.append(frame)
        where = "within"
    if not stays[where] or stays[where][-1] != path:
        stays[where].append(path)
    if event == "return" and depth and frame is depth[-1]:
        depth.pop()
        if not depth:
            sys.setprofile(None)

def built(name, formulation):
    import pyomo.environ as pyo
    import ddlopt
    from ddlopt.solvers import catalogue
    from ddlopt.solvers.contracts import formulation_of

    instance, block = ddlopt.load(name), pyo.Block(concrete=True)
    form = formulation_of(catalogue.method(formulation, instance.family), instance)
    sys.setprofile(note)
    form.build(block, instance)


depth = []
with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
    if words[0] == "build":
        built(*words[1:])
    else:
        sys.setprofile(note)
        run([*words, "--out", os.path.join(folder, "proof.json")] if words[0] == "certify" else words)
    sys.setprofile(None)
for where, found in stays.items():
    print(where, len(found), len(set(found)), len({os.path.dirname(each) for each in found}),
          len(found) - len(set(found)), sep="\\t")
"""
COMMANDS = (
    "solve topology/dlrm-n12-d4",
    "solve topology/hybrid-n16-d4-s1 --method link-exchange",
    "solve topology/tiny-n4-d2",
    "build topology/dlrm-n12-d4 rings-and-routes",
    "certify scheduling/tiny-capped",
)


def walks(asked):
    """Rows for each command: before the method begins, and within it; of others than ``solve`` the whole."""
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
