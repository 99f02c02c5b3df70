"""`make mutants`: weakens one guard at a time and runs its tests, which must notice."""
