"""The policy over time: snapshots of the rules, the replay of verdicts, and policy drafts, whose
effect can be simulated."""
