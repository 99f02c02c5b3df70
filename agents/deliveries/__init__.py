"""Deliveries: one engine sends what subjects have written in their outboxes, by mail, push, chat
and webhook."""
