"""Backups: one archive of the database and all files, taken while everything runs, restored while
nothing does."""
