"""The demo: two organisations with people, employees that follow scripts, and records to work on."""
