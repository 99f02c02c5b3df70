"""The sockets, and the readers that feed them."""
