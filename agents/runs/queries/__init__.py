"""The compiled queries of runs: for the engine, for pages and sockets, and for what is due."""
