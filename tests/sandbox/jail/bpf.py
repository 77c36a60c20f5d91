"""A simulator of seccomp's BPF, so that either architecture can test the filters of both."""

import struct


def decide(code: bytes, *, arch: int, number: int, args: tuple[int, ...] = ()) -> int:
    """Return the action of a seccomp filter for a system call."""
    padded = [value & 0xFFFFFFFFFFFFFFFF for value in (*args, 0, 0, 0, 0, 0, 0)[:6]]
    data = struct.pack("=IIQ6Q", number & 0xFFFFFFFF, arch, 0, *padded)
    program = list(struct.iter_unpack("=HBBI", code))
    accumulator, place = 0, 0
    while True:
        operation, if_true, if_false, k = program[place]
        place += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, k)
            case 0x15:
                place += if_true if accumulator == k else if_false
            case 0x35:
                place += if_true if accumulator >= k else if_false
            case 0x54:
                accumulator &= k
            case 0x06:
                return k
            case _:
                raise AssertionError(f"operation {operation:#x} is not one that the jail emits")
