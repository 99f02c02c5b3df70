"""Logins under attack: limits on tries, known browsers, and a bound on the cost of passwords."""
