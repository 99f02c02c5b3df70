"""`make mutants`: weaken one guard at a time and run the tests of that guard, one of which must
fail."""
