"""Webhooks: facts are sent to other systems, signed and at least once."""
