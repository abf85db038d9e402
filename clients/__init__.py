"""Client libraries, their code generators, and the conformance suite that all of them pass."""
