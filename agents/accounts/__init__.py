"""Organizations and the people in them: membership, invitations, logins, credentials and the
audit."""
