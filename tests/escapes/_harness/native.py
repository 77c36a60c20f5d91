import ctypes

NUMBERS = {}


class native:
    """Raw system calls by name, with the numbers of this machine: what an attacker has who has ctypes."""

    libc = ctypes.CDLL(None, use_errno=True)
    kept = []

    @classmethod
    def address(cls, value):
        """Where in memory some bytes or a text are now."""
        data = value.encode() + b"\0" if isinstance(value, str) else value
        made = ctypes.create_string_buffer(bytes(data), max(len(data), 1)) if isinstance(data, bytes) else data
        cls.kept.append(made)
        return ctypes.addressof(made)

    @classmethod
    def call(cls, name, *args):
        """The result of a call, or minus an errno."""
        words = [ctypes.c_long(arg if isinstance(arg, int) else cls.address(arg)) for arg in args]
        cls.libc.syscall.restype = ctypes.c_long
        result = cls.libc.syscall(ctypes.c_long(NUMBERS[name]), *words)
        return result if result >= 0 else -ctypes.get_errno()

    @classmethod
    def buffer(cls, size):
        """Memory to be written to, and read with `.raw`."""
        cls.kept.append(ctypes.create_string_buffer(size))
        return cls.kept[-1]
