"""Deliveries: one engine sends the deliveries in all outboxes, by mail, push, chat and webhook."""
