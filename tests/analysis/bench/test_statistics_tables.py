"""Tables as Markdown, LaTeX and CSV."""

import io

import pandas as pd
import pytest

from ddlopt.analysis.bench.figures import tabular

TABLE = pd.DataFrame({"method": ["a_b", "50 % & more | x"], "time": [1.23456, float("nan")], "wins": [3, 4]})
WRITTEN = {"time": lambda value: f"{value:.2f}"}


def test_markdown():
    assert tabular.markdown(TABLE, WRITTEN) == (
        "| method | time | wins |\n| --- | ---: | ---: |\n| a_b | 1.23 | 3 |\n| 50 % & more \\| x | – | 4 |\n"
    )


def test_latex():
    text = tabular.latex(TABLE, WRITTEN, caption="A & B", label="tab:x")
    assert text.splitlines() == [
        r"\begin{table}", r"\centering", r"\caption{A \& B}", r"\label{tab:x}", r"\begin{tabular}{lrr}", r"\toprule",
        r"method & time & wins \\", r"\midrule", r"a\_b & 1.23 & 3 \\", r"50 \% \& more | x & -- & 4 \\",
        r"\bottomrule", r"\end{tabular}", r"\end{table}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "escaped"), [("\\{}", r"\textbackslash{}\{\}"), ("a^~#$", r"a\textasciicircum{}\textasciitilde{}\#\$")]
)
def test_what_means_something_to_latex(raw, escaped):
    assert tabular.latex_text(raw) == escaped


def test_csv_keeps_all_digits():
    read = pd.read_csv(io.StringIO(tabular.csv_text(TABLE)))
    assert read["time"][0] == 1.23456
    assert list(read["method"]) == list(TABLE["method"])
