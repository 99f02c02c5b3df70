"""Page views: each one loads data, calls an action, and renders the response."""
