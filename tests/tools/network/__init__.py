"""The way out: tests over real sockets on loopback, with name, web and search servers of their own."""
