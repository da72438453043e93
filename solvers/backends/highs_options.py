"""The options of HiGHS: which there are, and which values they take."""

import difflib
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import highspy

from ddlopt.models.errors import OptionError, UnknownNameError
from ddlopt.solvers.backends.silent_highs import SilentHighs

_GOVERNED = {"time_limit": "time_s", "mip_rel_gap": "gap", "threads": "threads"}
_TYPES: Mapping[Any, tuple[Any, str]] = {
    highspy.HighsOptionType.kBool: (bool, "true or false"),
    highspy.HighsOptionType.kInt: (int, "an integer"),
    highspy.HighsOptionType.kDouble: ((int, float), "a number"),
    highspy.HighsOptionType.kString: (str, "a text"),
}


@cache
def option_names() -> tuple[str, ...]:
    """Names of all options that this HiGHS has."""
    highs = SilentHighs()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "options"
        highs.writeOptions(str(path))
        lines = path.read_text().splitlines()
    return tuple(sorted(line.split("=")[0].strip() for line in lines if "=" in line and not line.startswith("#")))


def check_options(options: Mapping[str, Any]) -> None:
    """Check names and values.

    Raises
    ------
    UnknownNameError
        For a name that HiGHS does not know.
    OptionError
        For a value that it does not take, or an option that ``Limits`` governs.
    """
    highs = SilentHighs()
    for name, value in options.items():
        if name in _GOVERNED:
            raise OptionError(f"HiGHS option '{name}' is set by Limits.{_GOVERNED[name]}")
        if name == "random_seed":
            raise OptionError("HiGHS option 'random_seed' is set by the seed of the solve")
        found, kind = highs.getOptionType(name)
        if found != highspy.HighsStatus.kOk:
            near = difflib.get_close_matches(name, option_names(), n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else f"; see {_MANUAL}"
            raise UnknownNameError(f"HiGHS has no option '{name}'{hint}")
        python, words = _TYPES[kind]
        # A bool is an int to Python, but not to HiGHS.
        if not isinstance(value, python) or (isinstance(value, bool) and kind != highspy.HighsOptionType.kBool):
            raise OptionError(f"HiGHS option '{name}' must be {words}, got {value!r}")
        if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise OptionError(f"HiGHS option '{name}' does not take the value {value!r}; see {_MANUAL}")


_MANUAL = "https://ergo-code.github.io/HiGHS/stable/options/definitions"
