"""Notices: tell people outside of Gadget's pages that something waits for them or has ended."""
