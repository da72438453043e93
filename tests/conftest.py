"""Shared by all tests: the folder of helpers is importable, and only the installed package is."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
