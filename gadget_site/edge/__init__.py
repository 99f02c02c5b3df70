"""The edge: everything between a client's connection and the pages, REST and sockets.

- `proxies`: the client's real address and scheme, and the headers that only a proxy may send.
- `answers`: no byte on the connection beyond the ones that an answer announces.
- `bodies`: the largest request body, by address and login.
- `connections`: Daphne's requests, which refuse a larger body while it arrives.
"""
