"""What the commands share: arguments, completion, what is shown, and how failures are told."""
