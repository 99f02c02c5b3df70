"""Backups: one archive of the database and all files, taken while Gadget runs and restored while it
is stopped."""
