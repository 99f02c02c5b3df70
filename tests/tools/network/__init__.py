"""The network client: tests over real sockets on loopback, with their own name, web and search
servers."""
