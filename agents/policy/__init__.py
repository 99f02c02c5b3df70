"""The policy over time: snapshots of the rules, replay of verdicts, and drafts of rule changes that are simulated."""
