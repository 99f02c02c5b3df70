"""The Django app of what reaches outside: an organisation's sources of tools, and the hosts that it allows."""
