"""What is asked: data, formulations, and the independent check of an answer."""
