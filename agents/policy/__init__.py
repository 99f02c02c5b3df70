"""The policy over time: snapshots of the rules, replay of verdicts, and policy drafts that are
simulated."""
