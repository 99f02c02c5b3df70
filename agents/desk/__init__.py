"""How runs and cards look: rows become HTML here, for pages and sockets alike, so that both show the same."""
