# Tries: a TCP connection by socket, asyncio, http.client and urllib.
# Origin: S7; the plain one.

import asyncio, http.client, socket, urllib.request

found, port = [], input["tcp"]
for reach in (
    lambda: socket.create_connection(("127.0.0.1", port), 2).recv(10),
    lambda: http.client.HTTPConnection("127.0.0.1", port, timeout=2).request("GET", "/"),
    lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=2).read(),
):
    try:
        found.append(reach())
    except Exception as error:
        found.append(repr(error))
try:
    await asyncio.open_connection("127.0.0.1", port)
except Exception as error:
    found.append(repr(error))
found
