"""Functions of a host that know a secret, and fail in ways that could tell it."""

import os


def _connect(password: str) -> None:
    raise ConnectionError("the database is down") from ValueError(f"wrong password {password}")


def query() -> str:
    """Fails with the secret in a local variable, in an argument and in the cause of what is raised."""
    password = os.environ["DATABASE_PASSWORD"]
    try:
        _connect(password)
    except ConnectionError as error:
        error.add_note(f"with {password}")
        raise
    return password


def double(number: int) -> int:
    """Twice as much."""
    return 2 * number
