"""What the files of cases are made of."""
