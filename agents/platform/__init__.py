"""The platform that every subject needs: encryption, hints to workers and pages, refusals, compiled
queries."""
