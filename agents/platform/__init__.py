"""The platform that all apps share: encryption, hints to workers and pages, refusals, and compiled
queries."""
