"""Webhooks: other systems are told of facts, signed and at least once."""
