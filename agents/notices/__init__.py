"""Notices: notify people, outside Gadget's pages, of things that wait for them or have ended."""
