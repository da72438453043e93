"""What counts as a proof: kinds of evidence and their checkers, which search nothing."""
