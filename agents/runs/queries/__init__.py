"""The compiled queries of runs, for the engine, pages, sockets and the sweeper."""
