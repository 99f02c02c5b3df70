"""How far an organisation's tools may go on the network."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reach:
    """Hosts by name or address, as `tools.network.host_in` writes them: lower case, ASCII, IPv6 without brackets.

    Attributes:
        allowed: may be reached without asking a person, and by a redirect.
        private: may be reached though their addresses are private or loopback ones. Link-local, metadata, translated
            and documentation addresses stay forbidden even if they stand here themselves.
    """

    allowed: frozenset[str] = frozenset()
    private: frozenset[str] = frozenset()
