"""Graph → graph: differentiation and batching. Each is one short interpreter over nodes; the rules are the ops'."""
