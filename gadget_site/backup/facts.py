"""Queries for both databases within the snapshot: the schema version, and the end of each audit."""

MIGRATIONS = "SELECT app, name FROM django_migrations ORDER BY id"
HEADS = """
    SELECT slug, seq, hash FROM accounts_audithead JOIN accounts_organization ON id = organization_id
    WHERE seq > 0 ORDER BY slug
"""
