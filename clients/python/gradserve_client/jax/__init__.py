"""Bridge to JAX. Needs the extra `jax`.

`layer` wraps a recorded function as a JAX function that works under `jit`, `grad`, `jvp` and `vmap`.
`import_function` traces a JAX function to a jaxpr and translates it, one rule per primitive, into a graph that the
server differentiates.
"""

from __future__ import annotations

from gradserve_client.jax.imported_function import ImportedFunction
from gradserve_client.jax.importer import import_function
from gradserve_client.jax.layer import layer

__all__ = ["ImportedFunction", "import_function", "layer"]
