"""The office: the tools that ship with Gadget, and their files and business records."""
