"""PyTorch, which training takes and nothing else does."""

import importlib
from typing import Any

from ddlopt.models.errors import OptionError


def pytorch() -> Any:
    """The module.

    Raises
    ------
    OptionError
        If it is not installed.
    """
    try:
        return importlib.import_module("torch")
    except ImportError:
        raise OptionError("training needs PyTorch: pip install 'ddlopt[learn]'") from None
