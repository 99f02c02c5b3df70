"""Providers of models, with one protocol for all; `registry.build_provider` builds one from its
configuration."""
