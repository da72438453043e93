"""Tables of figures as Markdown, LaTeX and CSV."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from ddlopt.analysis.tables import NONE, markdown_text
from ddlopt.analysis.texts import csv_cell
from ddlopt.models.errors import plain

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "µ": r"\textmu{}", "≤": r"$\leq$",
    "∞": r"$\infty$", "<": r"\textless{}", ">": r"\textgreater{}",
    "[": "{[}", "]": "{]}",  # at the beginning of a row they would be an option
}  # fmt: skip

Written = Mapping[str, Callable[[object], str]]
"""By column how a value is written for people; others as ``str`` has them."""


def latex_text(text: str) -> str:
    """The text with what means something to LaTeX escaped."""
    return "".join(_LATEX.get(letter, letter) for letter in plain(text))


def cell(value: object, column: str, written: Written) -> str:
    """A value for people."""
    if value is None or (isinstance(value, float) and value != value):
        return NONE
    return written[column](value) if column in written else str(value)


def markdown(table: pd.DataFrame, written: Written | None = None) -> str:
    """A table in Markdown, its numbers to the right."""
    rows = _texts(table, written or {})
    lines = [list(table.columns), ["---:" if numeric else "---" for numeric in _numeric(table)], *rows]
    return "".join(f"| {' | '.join(map(markdown_text, line))} |\n" for line in lines)


def latex(table: pd.DataFrame, written: Written | None = None, caption: str = "", label: str = "") -> str:
    r"""A ``table`` for LaTeX with the package ``booktabs``; all text is escaped.

    Parameters
    ----------
    table : DataFrame
    written : mapping, optional
    caption, label : str
        Left out where empty; the label is used as it is.
    """
    columns = "".join("r" if numeric else "l" for numeric in _numeric(table))
    lines = [r"\begin{table}", r"\centering"]
    lines += [rf"\caption{{{latex_text(caption)}}}"] if caption else []
    lines += [rf"\label{{{label}}}"] if label else []
    lines += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    body = [[latex_text(text) for text in row] for row in (list(table.columns), *_texts(table, written or {}))]
    rows = [f"{' & '.join(row)} " + r"\\" for row in body]
    lines += [rows[0], r"\midrule", *rows[1:], r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def csv_text(table: pd.DataFrame) -> str:
    """Comma-separated values with all digits; empty where there is no figure; no word is a formula."""
    return str(without_formulas(table).to_csv(index=False, lineterminator="\n"))


def without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the words and names of columns that a spreadsheet would take for formulas marked as words."""
    words = {
        name: [csv_cell(value) for value in table[name]]
        for name in table.columns
        if not pd.api.types.is_numeric_dtype(table[name].dtype)
    }
    return table.assign(**words).rename(columns=csv_cell)


def _numeric(table: pd.DataFrame) -> list[bool]:
    return [pd.api.types.is_numeric_dtype(kind) for kind in table.dtypes]


def _texts(table: pd.DataFrame, written: Written) -> Sequence[list[str]]:
    columns = list(table.columns)
    return [
        [cell(value, column, written) for value, column in zip(row, columns, strict=True)]
        for row in table.itertuples(index=False, name=None)
    ]
