# Tries: the code of the prelude's function exchanged, so that whoever holds the function runs other code.
# Origin: function.__code__; early binding is no defence against it.

import sys

wire = sys.modules["gloveport_guest.wire"]
wire.FORGED = b'["done","error",{"code":"internal-error","message":"reference 0000"},{}]'


def send(self, text):
    self._out.append(len(FORGED).to_bytes(4, "big") + FORGED)


wire.Channel.send.__code__ = send.__code__
await tools.add(1, 2)
