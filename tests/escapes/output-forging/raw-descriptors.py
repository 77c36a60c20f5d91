# Tries: bytes that are no message of a guest, straight to every descriptor that there is.
# Origin: own idea: programs that share a socket with a protocol.

import os

text = b'["canary"]'
for file in range(64):
    try:
        os.write(file, len(text).to_bytes(4, "big") + text)
    except OSError:
        pass
