"""Tests that are collected once, and run for each change of a file in a process forked from that.

``pytest`` takes seconds to begin, and most changes are seen by the first test that comes to them. So the tests of a
room are collected once; one fork runs them all and notes which lines of the files each of them comes to, and in how
many processor seconds; then each change is put into a fork of its own, in place of the code of the functions that
have it, and the tests that come to its line run there, short ones first, until one fails.
"""

import ast
import functools
import gc
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

from benchmarks.harness import ROOT

KILLED, SURVIVED, UNSEEN, APART = "killed", "survives", "no test comes here", "apart"
"""What becomes of a change; one outside of functions cannot be put into a process that has imported the file."""
PATIENCE, GRACE_S = 10, 5.0
"""A test that takes ten times its usual processor seconds, and the grace, has noticed the change."""
STUCK_S = 900.0
"""Of the clock, for a fork that waits and does not work."""


class Collected:
    """A pytest plugin that, in place of running the tests, tries the changes of files.

    Parameters
    ----------
    changes : dict
        From a file to its changes: the tree and the line of each.
    most_s : float
        Processor seconds, by the run without changes, of the tests that a change must outlive.
    """

    def __init__(self, changes: dict[Path, list[tuple[ast.Module, int]]], most_s: float) -> None:
        self.changes, self.most_s = changes, most_s
        self.failed = False
        self.found: dict[Path, list[str]] = {}
        self.broken: list[str] = []

    def pytest_collection(self) -> None:
        """An example that fails is enough: it need not be the smallest."""
        from hypothesis import Phase, settings

        settings.register_profile("once", settings(), phases=[Phase.explicit, Phase.generate], database=None)
        settings.load_profile("once")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = list(session.items)
        for file in self.changes:  # what tests would import only when they run is changed, too
            import_module(module_of(file))
        told = in_fork(lambda: self._alone(items))
        self._find()
        assert told is not None, "the tests do not end before anything is changed"
        self.broken = [items[number].nodeid for number in told["broken"]]
        for file, changes in self.changes.items():
            lines = {int(line): tests for line, tests in told["lines"][str(file)].items()}
            self.found[file] = []
            original = compile(file.read_text(encoding="utf-8"), str(file), "exec")
            whole = ast.parse(file.read_text(encoding="utf-8"))
            for tree, line in changes:
                changed = _changed(original, compile(tree, str(file), "exec"))
                tests = sorted({test for each in _same_statement(whole, line) for test in lines.get(each, ())})
                tests = self._short_first(tests, told["seconds"])
                if not changed:
                    fate = APART
                elif not tests:
                    fate = UNSEEN
                else:
                    chosen = [(items[test], told["seconds"][test]) for test in tests]
                    seen = in_fork(functools.partial(self._with_change, file, changed, chosen))
                    fate = SURVIVED if seen == {"seen": False} else KILLED
                self.found[file].append(fate)
        return True

    def _find(self) -> None:
        """Functions of the files, and what remembers answers: once, as a fork that looks at all objects copies them."""
        self.functions: dict[Path, list[FunctionType]] = {file: [] for file in self.changes}
        self.caches: list[Any] = []
        gc.unfreeze()  # what compiles kernels freezes what is there before
        for each in gc.get_objects():
            # By type(), as isinstance() follows weak proxies, also those of objects that are gone.
            if type(each) is FunctionType:
                for file in self.changes:
                    if each.__code__.co_filename.endswith(file.name) and _is(each.__code__, file):
                        self.functions[file].append(each)
            elif type(each) is functools._lru_cache_wrapper and str(each.__module__).startswith("ddlopt"):
                self.caches.append(each)
        gc.freeze()

    def _short_first(self, tests: Iterable[int], seconds: Sequence[float]) -> list[int]:
        kept, spent = [], 0.0
        for test in sorted(tests, key=seconds.__getitem__):
            spent += seconds[test]
            if kept and spent > self.most_s:
                break
            kept.append(test)
        return kept

    def _alone(self, items: Sequence[pytest.Item]) -> dict[str, Any]:
        """Run all, and note the lines and processor seconds of each, and what fails."""
        names = {str(file): defaultdict(list) for file in self.changes}
        known: dict[str, str | None] = {}
        met: set[tuple[str, int]] = set()

        def tracer(frame: FrameType, event: str, _: Any) -> Any:
            name = frame.f_code.co_filename
            if name not in known:
                resolved = str(Path(name).resolve()) if name.startswith("/") else name
                known[name] = resolved if resolved in names else None
            file = known[name]
            if file is None:
                return None

            def each_line(frame: FrameType, event: str, _: Any) -> Any:
                met.add((file, frame.f_lineno))
                return each_line

            met.add((file, frame.f_lineno))
            return each_line

        seconds, broken = [], []
        for number, item in enumerate(items):
            met.clear()
            self.failed = False
            before = time.process_time()
            sys.settrace(tracer)
            _run(item, items[number + 1] if number + 1 < len(items) else None)
            sys.settrace(None)
            seconds.append(time.process_time() - before)
            if self.failed:
                broken.append(number)
                continue
            for file, line in met:
                names[file][line].append(number)
        return {"lines": names, "seconds": seconds, "broken": broken}

    def _with_change(
        self, file: Path, changed: dict[CodeType, CodeType], chosen: Sequence[tuple[pytest.Item, float]]
    ) -> dict[str, bool]:
        """Whether some test fails."""
        for function in self.functions[file]:
            if function.__code__ in changed:
                function.__code__ = changed[function.__code__]
        for cache in self.caches:
            cache.cache_clear()
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        for (item, seconds), following in zip(chosen, [*chosen[1:], (None, 0.0)], strict=True):
            signal.setitimer(signal.ITIMER_PROF, PATIENCE * seconds + GRACE_S)
            _run(item, following[0])
            if self.failed:
                return {"seen": True}
        return {"seen": False}


def module_of(file: Path) -> str:
    """The module of a file: storeys are parts of the package, and the front door is the package itself."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts if parts[0] == "ddlopt" else ("ddlopt", *parts)).removesuffix(".__init__")


def _run(item: pytest.Item, following: pytest.Item | None) -> None:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def _is(code: CodeType, file: Path) -> bool:
    return code.co_filename.startswith("/") and Path(code.co_filename).resolve() == file


def in_fork(work: Any) -> Any:
    """What a function returns in a process of its own, and None if that process is killed or stuck."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told"
        child = os.fork()
        if child == 0:
            try:
                nowhere = os.open(os.devnull, os.O_RDWR)
                for each in (0, 1, 2):
                    os.dup2(nowhere, each)
                limit = 6 << 30
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
                told.write_text(json.dumps(work()))
            finally:
                os._exit(0)
        until = time.monotonic() + STUCK_S
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            if time.monotonic() > until:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                break
            time.sleep(0.005)
        return json.loads(told.read_text()) if told.exists() and told.stat().st_size else None


def _changed(before: CodeType, after: CodeType) -> dict[CodeType, CodeType]:
    """The functions that are not the same; nothing where what is outside of functions differs."""

    def walk(code: CodeType) -> list[CodeType]:
        inner = [each for each in code.co_consts if isinstance(each, CodeType)]
        return [code, *(deep for each in inner for deep in walk(each))]

    pairs = list(zip(walk(before), walk(after), strict=True))
    functions = {old: new for old, new in pairs if old != new and old.co_flags & 0x2}  # has locals of its own
    outside = [(old, new) for old, new in pairs if not old.co_flags & 0x2]

    def own(code: CodeType) -> tuple[Any, ...]:
        return code.co_code, tuple(each for each in code.co_consts if not isinstance(each, CodeType)), code.co_names

    return {} if any(own(old) != own(new) for old, new in outside) else functions


def _same_statement(tree: ast.Module, line: int) -> set[int]:
    """Lines of the innermost statement that a line is in, without the statements inside of it."""
    inside = [each for each in ast.walk(tree) if isinstance(each, ast.stmt) and each.lineno <= line <= each.end_lineno]
    inner = max(inside, key=lambda each: each.lineno)
    lines = set(range(inner.lineno, inner.end_lineno + 1))
    for each in ast.walk(inner):
        if isinstance(each, ast.stmt) and each is not inner:
            lines -= set(range(each.lineno, each.end_lineno + 1))
    return lines | {line}


def fates(
    changes: dict[Path, list[tuple[ast.Module, int]]], tests: Sequence[str], most_s: float
) -> tuple[dict[Path, list[str]], list[str]]:
    """What becomes of each change of each file, and the tests that fail before anything is changed."""
    plugin = Collected(changes, most_s)
    with tempfile.TemporaryDirectory() as folder:
        words = ["-q", "-s", "-m", "not slow", "-p", "no:cacheprovider", f"--basetemp={folder}/base"]
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = f"{folder}/hypothesis"
        os.chdir(ROOT)
        pytest.main([*words, *tests], plugins=[plugin])
    return plugin.found, plugin.broken
