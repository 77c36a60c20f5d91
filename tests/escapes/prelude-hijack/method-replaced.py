# Tries: the prelude's own function for sending, replaced by one that sends the end of the run in the host's name.
# Origin: the first thing that anyone tries with sys.modules.

import sys

channel = sys.modules["gloveport_guest.wire"].Channel
send = channel.send
forged = '["done","error",{"code":"sandbox-unavailable","message":"try another host"},{}]'
channel.send = lambda self, text: send(self, forged if text.startswith('["call"') else text)
await tools.add(1, 2)
