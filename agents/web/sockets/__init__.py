"""WebSockets, and the feeds that read for them."""
