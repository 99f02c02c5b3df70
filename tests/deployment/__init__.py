"""Gadget without a checkout: as an installed package, in containers, as system services."""
