"""The names of the demo's organizations, and its password."""

ORGANIZATION = "acme-demo"
OTHER_ORGANIZATION = "other-demo"
ORGANIZATIONS = (ORGANIZATION, OTHER_ORGANIZATION)
EMAIL_DOMAIN = "gadget.example"
PASSWORD = "gadget-demo"  # noqa: S105 - everybody may know it
