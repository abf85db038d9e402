"""The drawings of the documentation: which graphs are drawn, and the files that are drawn of them.

    drawn        a graph that is drawn: its nodes as a request has them, and its id
    definitions  ops that are defined by several nodes, as these
    examples     the graphs that the programs of examples/ send
    passes       a gradient as it is written down, and after each pass
    gallery      the graphs of the gallery

`make drawings` draws them by the module that draws in the playground, `playground/src/drawing.ts`, under Node. A
picture holds the id of its graph, so that a test says which ones are out of date, without Node.
"""
