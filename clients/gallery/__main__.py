"""Write the imported graphs of the gallery: all, or those that are named."""

from __future__ import annotations

import argparse

from clients.gallery import jax_models, onnx_models, torch_models

#: each system's models
EXAMPLES = (*onnx_models.EXAMPLES, *torch_models.EXAMPLES, *jax_models.EXAMPLES)


def main() -> None:
    """Write their files."""
    parser = argparse.ArgumentParser(prog="clients.gallery", description=__doc__)
    parser.add_argument("names", nargs="*", help="examples by name; all, where none is named")
    names = parser.parse_args().names
    for example in EXAMPLES:
        if not names or example.name in names:
            print(f"wrote {example.write()}")


if __name__ == "__main__":
    main()
