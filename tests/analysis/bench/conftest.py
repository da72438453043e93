"""A package with odd methods, installed for a test."""

from pathlib import Path

import pytest

PLUGIN = Path(__file__).parent / "plugin"


@pytest.fixture
def odd_methods(monkeypatch):
    """The methods ``crash``, ``hang``, ``hog`` and ``slow`` of the topology family are there, in all processes."""
    monkeypatch.syspath_prepend(PLUGIN)
    monkeypatch.setenv("PYTHONPATH", str(PLUGIN))
    return PLUGIN
