"""Triggers: messages from other systems that start runs."""
