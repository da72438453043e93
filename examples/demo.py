"""TopoOpt's heuristic and ours against the exact optimum on bundled instances, with pictures of what they found.

Run by `make demo`; a minute or two on two cores.
"""

import argparse
from pathlib import Path

import ddlopt
from ddlopt.analysis import plots, tables
from ddlopt.display import LiveLine, out_console

HEURISTICS = ("topology-finder", "link-exchange")
EXACT = {
    "topology/all-to-all-n6-d2": ("min-congestion",),
    "topology/danoint": ("min-congestion",),
    "topology/hybrid-n8-d3-s1": ("rings-and-routes",),
    "topology/all-to-all-n12-d3": ("circulant",),
    "topology/dlrm-stress-n16-d4": (),  # out of reach for a minute's proof: the heuristics' own bounds certify the gap
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the pictures")
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds for each method on each instance")
    parser.add_argument("--instances", nargs="+", default=list(EXACT))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    console = out_console()
    instances = [ddlopt.load(name) for name in options.instances]
    print(f"{len(instances)} instances, at most {options.time_limit:g} s for each method on each")
    results = []
    with LiveLine(instances) as line:
        for name, instance in zip(options.instances, instances, strict=True):
            methods = [*HEURISTICS, *EXACT.get(name, ("auto",))]
            results += ddlopt.compare([instance], methods, time_limit=options.time_limit, threads=2, progress=line)
    console.print(tables.table(results, instances))
    for note in tables.notes(results):
        print(note)

    pictures = {"comparison": plots.comparison(results)}
    for instance in instances:
        here = [result for result in results if result.instance_digest == instance.digest]
        pictures[instance.name] = plots.solutions(here, [instance])
    for name, figure in pictures.items():
        path = options.out / f"{name}.png"
        plots.save(figure, path)
        print(f"picture: {path}")


if __name__ == "__main__":
    main()
