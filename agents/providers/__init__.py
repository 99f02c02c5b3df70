"""Providers of models behind one protocol; `registry.build_provider` builds the one that a
configuration names."""
