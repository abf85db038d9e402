"""Commands of `gradserve` that need more than a few lines, one a file."""
