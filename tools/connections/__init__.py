"""Django app for connections: an organization's tool sources and its allowed hosts."""
