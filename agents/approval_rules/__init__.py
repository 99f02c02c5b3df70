"""Approval rules: how many people, of which groups, must approve a card; and deputies."""
