"""How long ``import ddlopt`` and ``ddlopt --help`` take, in processes of their own.

    python benchmarks/startup.py [--times 9]

Medians of wall-clock seconds, which count other work on the machine too, and of processor time, which does not. Where
a median of either is above what is allowed the modules that cost most are printed.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

RUN = "import sys; from ddlopt.cli import run; sys.exit(run({}))"
MEASURED = {
    "python": ("", None),
    "import ddlopt": ("import ddlopt", 0.5),
    "ddlopt --help": (RUN.format("['--help']"), 1.0),
    "ddlopt bench --help": (RUN.format("['bench', '--help']"), 1.0),
    "ddlopt list": (RUN.format("['list']"), None),
}
"""Code, and the seconds that it may take."""
SHOWN = 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=9, help="processes of each kind")
    times = parser.parse_args().times
    print(f"{'':20} {'seconds':>8} {'CPU s':>7} {'allowed':>8}")
    slow = []
    for name, (code, allowed) in MEASURED.items():
        wall_s, cpu_s = (statistics.median(each) for each in zip(*(once(code) for _ in range(times)), strict=True))
        print(f"{name:20} {wall_s:8.3f} {cpu_s:7.3f} {'' if allowed is None else f'{allowed:.1f}':>8}")
        if allowed is not None and max(wall_s, cpu_s) > allowed:
            slow.append(name)
    for name in slow:
        print(f"\n{name}: modules by their own import time")
        print("".join(slowest_imports(MEASURED[name][0])))


def once(code: str) -> tuple[float, float]:
    """Wall-clock seconds and seconds of processor time of one process."""
    began = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-I", "-c", code], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise SystemExit(f"python -c {code!r} failed")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime


def slowest_imports(code: str) -> list[str]:
    """Lines on the modules that cost most by themselves."""
    command = [sys.executable, "-I", "-X", "importtime", "-c", code]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()
    parts = [line.removeprefix("import time:").split("|") for line in lines if line.count("|") == 2]
    costs = [(int(own), name.strip()) for own, _, name in parts if own.strip().isdigit()]
    return [f"{own / 1e6:8.3f} s  {name}\n" for own, name in sorted(costs, reverse=True)[:SHOWN]]


if __name__ == "__main__":
    main()
