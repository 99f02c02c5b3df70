"""The gate for agents that run elsewhere: their keys, their sessions with tools of Gadget, and
their asks."""
