# Tries: a packet socket, which sees and makes frames of the link.
# Origin: CVE-2017-7308, CVE-2020-14386 (AF_PACKET).

native.call("socket", 17, 3, 0)
