"""OAuth 2: finds authorization servers, gets tokens from them, and refreshes them. authlib writes the messages.

    discovery.py   a source's URL → its authorization server (RFC 9728, RFC 8414)
    grants.py      requests to an authorization server: code with PKCE, device code, client credentials, refresh, revocation
    accounts.py    stored tokens: one refresh at a time, in all processes

Every request goes through egress. A source reaches the origins of the server that a person confirmed, and no other.
"""
