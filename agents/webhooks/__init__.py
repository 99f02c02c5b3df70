"""Webhooks: send facts to other systems, signed and at least once."""
