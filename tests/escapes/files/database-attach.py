# Tries: a database of the host, and a file by SQLite's own ways to one: ATTACH, backup, VACUUM INTO, extensions.
# Origin: SQL injection's way to files; sqlite3.load_extension.

import sqlite3

path, found = input["write"], []
base = sqlite3.connect(":memory:")
for statement in (f"attach '{path}' as x", "create table x.t (c)", f"vacuum into '{path}-copy'"):
    try:
        found.append(base.execute(statement).fetchall())
    except sqlite3.Error as error:
        found.append(str(error))
try:
    base.enable_load_extension(True)
    base.load_extension(input["file"])
except Exception as error:
    found.append(str(error))
found
