"""Protection of the login: limits on tries, known browsers, and a limit on the cost of hashing
passwords."""
