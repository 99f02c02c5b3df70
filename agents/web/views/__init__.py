"""The pages: each view is a door that fetches, calls what does the work, and answers."""
