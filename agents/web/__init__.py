"""The pages and their sockets."""
