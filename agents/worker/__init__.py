"""The worker's side: the jobs of the queue, and the sweeper."""
