"""Queries for both databases within the snapshot: the schema version, and the end of each audit."""

MIGRATIONS = "SELECT app, name FROM django_migrations ORDER BY id"
HEADS = """
    SELECT slug, seq, hash FROM agents_audithead JOIN agents_organization ON id = organization_id
    WHERE seq > 0 ORDER BY slug
"""
