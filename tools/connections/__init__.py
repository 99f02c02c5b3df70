"""The Django app for external connections: an organization's tool sources and its allowed hosts."""
