"""HiGHS that says nothing."""

import highspy


class SilentHighs(highspy.Highs):
    """:class:`highspy.Highs` without output.

    HiGHS 1.16 prints who it is while it is made, before anybody can ask it not to: where callbacks are enabled, which
    is what this hooks into. Whoever reads what ``ddlopt … --json`` prints reads our figures only.
    """

    def enableCallbacks(self) -> None:  # noqa: N802
        """Be silent first."""
        self.silent()
        super().enableCallbacks()
