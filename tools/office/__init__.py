"""The office: what the data of the tools that ship offers to the rest of Gadget."""
