"""What refuses bad input says it in one line."""

from contextlib import contextmanager

import pytest


@contextmanager
def one_line(error, says="", match=None):
    """What is done in this block raises the error, in one line that has these words, or matches."""
    with pytest.raises(error, match=match) as told:
        yield
    line = str(told.value)
    assert says in line
    assert "\n" not in line
