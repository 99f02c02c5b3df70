"""The demo: two organizations with people, employees that follow scripts, and records to work
on."""
