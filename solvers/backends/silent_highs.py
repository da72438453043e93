"""HiGHS that says nothing and runs after whatever ran before it."""

from typing import Any

import highspy


class SilentHighs(highspy.Highs):  # type: ignore[misc]
    """:class:`highspy.Highs` without output.

    HiGHS 1.16 prints who it is while it is made, before anybody can ask it not to: where callbacks are enabled, which
    is what this hooks into. Whoever reads what ``ddlopt … --json`` prints reads our figures only.
    """

    def enableCallbacks(self) -> None:  # noqa: N802
        """Be silent first."""
        self.silent()
        super().enableCallbacks()

    def run(self) -> Any:
        """Run, whatever number of threads somebody else's run has left in this thread.

        HiGHS keeps the number of the first run and refuses others: the model's status is then *not set*.
        """
        status = super().run()
        if status == highspy.HighsStatus.kError and self.getModelStatus() == highspy.HighsModelStatus.kNotset:
            self.resetGlobalScheduler(False)
            status = super().run()
        return status
