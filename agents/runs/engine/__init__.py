"""The engine: drives a run from its task to its answer; the states are in
docs/internals/engine.md."""
