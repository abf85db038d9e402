"""Drawings of the documentation: the graphs to draw, and their picture files.

`make drawings` draws them under Node with `playground/src/drawing.ts`, the module that the playground uses. A picture
contains the id of its graph, so that a test can find stale pictures without Node. For example,
`docs/drawings/ops/gelu.svg` shows the nodes of which `gelu` is composed.
"""
