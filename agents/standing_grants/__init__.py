"""Standing grants: people's permissions that approve cards of one shape for a limited time."""
