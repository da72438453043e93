"""Trees and prices are asked here, not the annealing before them."""

import pytest
from deployment_plans import anneal_little


@pytest.fixture(autouse=True)
def _little_annealing(monkeypatch):
    anneal_little(monkeypatch)
