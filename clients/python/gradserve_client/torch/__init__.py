"""The bridge to PyTorch: recorded functions as its operations, and modules whose parameters stay with the server.

Needs the extra `torch`.
"""

from __future__ import annotations

from gradserve_client.torch.layer import layer
from gradserve_client.torch.resident import ResidentModule

__all__ = ["ResidentModule", "layer"]
