"""What compressing, sending and losing gradients costs."""
