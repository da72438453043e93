"""Where the public data that some tests run on is found; it is not part of the project."""

import os
from pathlib import Path

import pytest

ROOT = Path(os.environ.get("DDLOPT_SHARED_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


def shared_data(name: str) -> Path:
    """Path of a public data file; skips the test where it is absent."""
    path = ROOT / name
    if not path.exists():
        pytest.skip(f"public data file {name} is not here; set DDLOPT_SHARED_DATA to a folder that holds it")
    return path
