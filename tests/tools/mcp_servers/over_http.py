"""Serve the published time server over streamable HTTP: `python over_http.py PORT`."""

import sys

from mcp_server_time.server import create_server

if __name__ == "__main__":
    create_server("UTC").run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
