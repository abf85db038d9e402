"""Administration: the `gradserve` command line and the checks of `gradserve doctor`."""
