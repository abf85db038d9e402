"""`python -m service` is the command `gradserve`."""

from __future__ import annotations

from service.cli import main

main()
