"""Time and bandwidth shared out by convex programs, and schedules that follow the shares."""
