"""`gloveport auth`: the user's accounts and stored credentials."""
