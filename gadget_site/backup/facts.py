"""Queries that read the applied migrations and the head of each audit chain in a backup's snapshot,
on either database."""

MIGRATIONS = "SELECT app, name FROM django_migrations ORDER BY id"
HEADS = """
    SELECT slug, seq, hash FROM accounts_audithead JOIN accounts_organization ON id = organization_id
    WHERE seq > 0 ORDER BY slug
"""
