"""Providers of models, which all follow one protocol. `registry.build_provider` builds a provider
from its configuration."""
