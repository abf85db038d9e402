"""Commands of `gradserve` that need more than a few lines, one a file.

Files:
    doctor   `gradserve doctor`: a line for each thing that was looked at, and what to do where something is wrong
    ingress  `gradserve ingress`: one address for several servers, until a signal
    keys     `gradserve keys`: add, list and revoke the keys of a file. A server that uses it notices by itself
"""
