"""The background processes: workers with the jobs of the queue, and sweepers."""
