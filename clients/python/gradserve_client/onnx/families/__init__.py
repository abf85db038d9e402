"""Rules for ONNX's ops, grouped by family. Importing a module of this package adds its rules to `table.RULES`."""
