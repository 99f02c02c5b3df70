"""Gadget where nobody has the checkout: as an installed package, in containers, as services of the system."""
