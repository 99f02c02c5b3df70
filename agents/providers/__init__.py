"""Providers run the model: `choice.provider_for` makes the one that a configuration names."""
