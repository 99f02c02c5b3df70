"""The edge: everything between a client's connection and the pages, REST and sockets.

- `proxies`: the client's real address and scheme, and the headers that only a proxy may send.
- `bounded_responses`: responses that never have more bytes than they announced.
- `bodies`: the largest request body, by URL and login.
- `connections`: Daphne's requests, which refuse a body that is too large while it arrives.
"""
