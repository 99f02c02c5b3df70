"""Page views: each one loads data, calls the action that does the work, and renders the answer."""
