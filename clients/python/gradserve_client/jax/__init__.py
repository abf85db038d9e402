"""The bridge to JAX: recorded functions under `jit`, `grad`, `jvp`, `vmap` and what is made of these.

Needs the extra `jax`.
"""

from __future__ import annotations

from gradserve_client.jax.layer import layer

__all__ = ["layer"]
