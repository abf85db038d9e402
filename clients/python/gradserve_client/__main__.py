"""`python -m gradserve_client import FILE.onnx --name NAME`: store a model on a server."""

from __future__ import annotations

import sys

from gradserve_client.importing.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
