"""Administration: the command line of `gradserve`, its commands, and the checks of `gradserve doctor`."""
