"""Under which names the demo is found."""

ORGANIZATION = "acme-demo"
OTHER_ORGANIZATION = "other-demo"
PASSWORD = "gadget-demo"  # noqa: S105 - everybody may know it
