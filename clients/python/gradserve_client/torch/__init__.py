"""The bridge to PyTorch: recorded functions as operations of autograd, and modules whose parameters stay with the server.

Needs the extra `torch`.
"""

from __future__ import annotations

from gradserve_client.torch.layer import layer

__all__ = ["layer"]
