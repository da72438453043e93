"""Checkers that stand alone: one file a problem, which needs neither ddlopt nor any other package.

``python topology.py INSTANCE SOLUTION`` prints the objective in rational numbers and every rule that is broken. They
are written from the statements of the problems, for authors who work in another language, and share no code with
``evaluate``; a test holds that both agree on thousands of changed answers.
"""

from pathlib import Path


def file_of(problem: str) -> Path | None:
    """The checker of a problem (``"compression/sfb"``); None where there is none yet."""
    file = Path(__file__).with_name(f"{problem.replace('/', '_')}.py")
    return file if file.is_file() else None
