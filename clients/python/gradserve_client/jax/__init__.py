"""JAX and graphs: recorded functions under its transformations, and functions of JAX as graphs. Needs the extra `jax`.

layer              a recorded function as one of JAX, under `jit`, `grad`, `jvp`, `vmap` and what is made of these
primitives         the two primitives that this is made of
importer           `import_function`: from a function of JAX and example arguments to a graph
imported_function  what that gives
trees              arguments and results as trees, and the names of their leaves
translator         the walk over the equations of jaxprs: folds, asks rules
call               one equation, as a rule sees it
values             what variables stand for, and the graph that has their nodes
bodies             jaxprs as functions of the graph
custom_rules       rules of `custom_jvp` and `custom_vjp` as jaxprs of cotangents
rules              the table of rules, with those of all families
families           the rules, a family a file
"""

from __future__ import annotations

from gradserve_client.jax.imported_function import ImportedFunction
from gradserve_client.jax.importer import import_function
from gradserve_client.jax.layer import layer

__all__ = ["ImportedFunction", "import_function", "layer"]
