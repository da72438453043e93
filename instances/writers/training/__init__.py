"""Plans for training steps as the files that training frameworks take, each read back."""
