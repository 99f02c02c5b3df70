"""Standing grants: people's permissions that answer cards of one shape for a limited time."""
