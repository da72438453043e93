"""One slot at a time: who runs, how wide and where."""
