"""What every subject needs: encryption, messages to workers and pages, refusals, and signs of life."""
