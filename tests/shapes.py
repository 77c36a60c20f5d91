"""Programs that compute without end, and programs that take memory without end: as many shapes as came to mind."""

# JavaScript and TypeScript.

SCRIPT_SPINS = {
    "loop": "while (true) {}",
    "async loop": "while (true) await null",
    "microtasks": "const f = (): any => Promise.resolve().then(f); await f()",
    "generator": "for (const x of (function* () { while (true) yield 1 })()) {}",
    "regex": "/^(a+)+$/.test('a'.repeat(40) + 'b')",
    "sort": "while (true) [3, 2, 1].sort(() => Math.random() - 0.5)",
    "comparator": "[1, 2].sort(() => { while (true) {} })",
    "json": "const o: any = {a: 1, toJSON() { while (true) {} }}; JSON.stringify(o)",
    "getter": "return { get x() { while (true) {} } }",
    "proxy": "return new Proxy({}, { ownKeys() { while (true) {} } })",
    "string": "'a'.repeat(2 ** 20).split('').map((c: string) => { while (true) {} })",
    "bigint": "let x = 3n; while (true) x = (x * x) % (2n ** 200000n)",
    "catch": "while (true) { try { throw 1 } catch { continue } }",
    "finally": "for (;;) { try { await tools.add(1, 1) } finally { continue } }",
    "timer": "setInterval(() => {}, 0); await new Promise(() => {})",
    "then": "return { then(resolve: any) { while (true) {} } }",
    "intl": "const f = new Intl.DateTimeFormat('de', {dateStyle: 'full'}); while (true) f.formatToParts(0)",
    "collator": "const c = new Intl.Collator('de'); while (true) ['b', 'a', 'ä'].sort(c.compare)",
    "segmenter": "const s = new Intl.Segmenter('th', {granularity: 'word'}); while (true) [...s.segment('a'.repeat(1e4))]",
    "clone": "const o = Array.from({length: 1e4}, (_, i) => ({i})); while (true) structuredClone(o)",
    "digest": "while (true) await crypto.subtle.digest('SHA-256', new Uint8Array(1e6))",
    "coercion": "return `${{ [Symbol.toPrimitive]() { while (true) {} } } as any}`",
    "iterator": "const [...x] = { [Symbol.iterator]: () => ({ next() { while (true) {} } }) } as any; return x",
    "replace": "return 'a'.replace(/a/, () => { while (true) {} })",
}

SCRIPT_BOMBS = {
    "arrays": "const a = []; while (true) a.push(new Array(1e5).fill(1.5))",
    "objects": "const a: any[] = []; while (true) a.push({a: {b: {c: a.length}}})",
    "strings": "const a: string[] = []; while (true) a.push(Math.random().toString(36).repeat(1000))",
    "ropes": "let s = 'x'; while (true) { s = s + s + Math.random(); s.charCodeAt(5); if (s.length > 2 ** 28) s = s.slice(1) }\n",
    "buffers": "const a = []; while (true) a.push(new Uint8Array(1e7).fill(1))",
    "one buffer": "return new Uint8Array(2 ** 31).fill(1).length",
    "bigint": "const a: bigint[] = []; while (true) a.push(2n ** 4000000n + BigInt(a.length))",
    "map": "const m = new Map(); let i = 0; while (true) m.set(i++, {i})",
    "closures": "const a: any[] = []; while (true) { const big = new Array(1000).fill(0); a.push(() => big) }",
    "promises": "const a: any[] = []; while (true) a.push(new Promise((r) => setTimeout(r, 1e9)))",
    "errors": "const a: any[] = []; while (true) a.push(new Error('x'.repeat(1000)))",
    "regex": "const a: any[] = []; let i = 0; while (true) { const r = new RegExp('(a|b|c){1,50}' + i++); r.test('abcabc'); a.push(r) }",
    "structured clone": "let a: any = [1]; while (true) a = structuredClone([a, a, 'y'.repeat(1e6)])",  # with less, the stack ends first
    "set of strings": "const s = new Set(); while (true) s.add('x'.repeat(100) + s.size)",
    "blobs": "const a: any[] = []; while (true) a.push(new Blob(['x'.repeat(1e6) + a.length]))",
    "numbers formatted": "const a: any[] = []; while (true) a.push(new Intl.NumberFormat('de', {minimumFractionDigits: a.length % 20}))",
}

QUICKJS_SPINS, QUICKJS_BOMBS = (
    {name: code for name, code in shapes.items() if not any(word in code for word in ("Intl", "crypto.subtle", "Blob"))}
    for shapes in (SCRIPT_SPINS, SCRIPT_BOMBS)
)
"""Without what that engine lacks."""

# Python in its own interpreter.

PYTHON_SPINS = {
    "loop": "while True: pass",
    "await of nothing": "import asyncio\nwhile True: await asyncio.sleep(0)",
    "awaitable that always yields": "class A:\n    def __await__(self):\n        while True: yield\nawait A()",
    "iterator in C": "import itertools\nsum(itertools.repeat(1))",
    "any of a count": "import itertools\nany(n < 0 for n in itertools.count())",
    "sum of a range": "sum(range(10**13))",
    "member of a range": "'x' in range(10**13)",
    "regular expression": "import re\nre.match('(a+)+$', 'a' * 60 + 'b')",
    "comparison while sorting": "class A:\n    def __lt__(self, other):\n        while True: pass\nsorted([A(), A()])",
    "hash in a dictionary": "class A:\n    def __hash__(self):\n        while True: pass\n{A(): 1}",
    "colliding hashes": "class A:\n    __hash__ = lambda s: 1\n    __eq__ = lambda s, o: s is o\n{A() for _ in range(10**6)}",
    "power in C": "pow(3, 10**9 + 7, 10**400000 + 1)",
    "digits of a number": "import sys\nsys.set_int_max_str_digits(0)\nstr(7**(2**23))",
    "product in C": "x = 3**(2**22)\nwhile True: y = x * x",
    "factorial": "import math\nmath.factorial(10**7)",
    "permutations": "import itertools\nlist(x for x in itertools.permutations(range(20)) if x is None)",
    "text compared": "import difflib\ndifflib.SequenceMatcher(None, 'ab' * 20000, 'ba' * 20000, False).ratio()",
    "decompression": "import zlib\nd = zlib.compress(bytes(10**7))\nwhile True: zlib.decompress(d)",
    "key stretching in C": "import hashlib\nhashlib.pbkdf2_hmac('sha256', b'x', b'y', 2**31 - 1)",
    "finalizer": "class A:\n    def __del__(self):\n        while True: pass\na = A()\ndel a",
    "error swallowed": "while True:\n    try:\n        raise KeyboardInterrupt\n    except BaseException: pass",
    "text of an error": "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E",
    "signals ignored": "import signal\nfor s in (1, 2, 3, 10, 12, 13, 14, 15, 24, 25):\n    signal.signal(s, signal.SIG_IGN)\nwhile True: pass",
    "wait in C": "import ctypes\nwhile True: ctypes.CDLL(None).sleep(1000)",  # a signal ends one such wait
    "wait for a descriptor": "import os\nos.read(os.eventfd(0), 8)",
    "lock taken twice": "import _thread\nl = _thread.allocate_lock()\nl.acquire()\nl.acquire()",
    "trace hook": "import sys\ndef f(*a):\n    while True: pass\nsys.settrace(f)\n(lambda: 0)()",
}

PYTHON_BOMBS = {
    "list": "x = []\nwhile True: x.append([0] * 1000)",
    "bytes repeated": "x = []\nwhile True: x.append(b'x' * 10**7)",
    "text doubled": "x = 'x'\nwhile True: x += x",
    "one bytearray": "bytearray(2**40)",
    "list repeated": "[0] * 2**36",
    "whole number": "1 << (1 << 40)",
    "width of a format": "'{:>{}}'.format('x', 2**34)",
    "dictionary": "x = {}\nwhile True: x[len(x)] = str(len(x))",
    "closures": "x = None\nwhile True: x = (lambda y: lambda: y)(x)",
    "instances": "class A: pass\nx = []\nwhile True:\n    a = A()\n    a.b = {}\n    x.append(a)",
    "tasks": "import asyncio\nx = []\nasync def f(): await asyncio.sleep(10**6)\nwhile True: x.append(asyncio.ensure_future(f()))",
    "tee of an iterator": "import itertools\na, b = itertools.tee(itertools.count())\nfor _ in a: pass",
    "decompression": "import zlib\nd = zlib.decompressobj()\nc = zlib.compress(bytes(10**8))\nx = []\nwhile True: x.append(zlib.decompress(c))",
    "database in memory": "import sqlite3\nd = sqlite3.connect(':memory:')\nd.execute('create table t (c)')\nwhile True: d.execute('insert into t values (zeroblob(1000000))')",
    "mapping": "import mmap\nx = []\nwhile True:\n    m = mmap.mmap(-1, 10**7, mmap.MAP_PRIVATE)\n    m.write(b'x' * 10**7)\n    x.append(m)",
    "malloc": "import ctypes\nl = ctypes.CDLL(None)\nl.malloc.restype = ctypes.c_void_p\nwhile True:\n    p = l.malloc(10**7)\n    if not p: raise MemoryError\n    ctypes.memset(p, 1, 10**7)",
    "arguments of a call": "f = lambda *a: 0\nf(*iter(lambda: 0, 1))",
    "traceback": "def f(n, e=None):\n    x = bytearray(10**6)\n    try:\n        raise ValueError from e\n    except ValueError as error:\n        return error\ne = None\nwhile True: e = f(0, e)",
}

# Python in Monty, which has less of the language.

MONTY_SPINS = {
    "loop": "while True: pass",
    "sum of a range": "sum(range(10**13))",
    "comprehension": "[0 for _ in range(10**12) if False]",
    "nested loops": "for a in range(10**6):\n    for b in range(10**6):\n        for c in range(10**6): pass",
    "error swallowed": "while True:\n    try:\n        raise ValueError\n    except ValueError: pass",
    "finally": "while True:\n    try:\n        pass\n    finally:\n        continue",
    "function called": "def f(x): return x\nwhile True: f(1)",
    "lambda in a sort": "while True: sorted([3, 1, 2], key=lambda x: -x)",
    "sort of much": "x = [(i * 7919) % 100003 for i in range(10**5)]\nwhile True: sorted(x)",
    "text built and dropped": "while True:\n    x = ''\n    for _ in range(1000): x += 'y'",
    "text searched": "x = 'a' * 10**6\nwhile True: x.find('b')",
    "text split": "x = 'a ' * 10**5\nwhile True: x.split()",
    "numbers": "x = 3\nwhile True: x = x * x % (2**4000)",
    "format": "while True: f'{1.23456:.3f}'",
    "dictionary": "d = {}\nwhile True: d['a'] = len(d)",
    "set operations": "a = set(range(1000))\nwhile True: a | a",
    "calls of a tool": "while True: await tools.add(1, 1)",
    "json": "import json\nwhile True: json.dumps([1, 2, 3])",
    "regular expression": "import re\nwhile True: re.search('(a|b)*c', 'ab' * 1000)",
    "wait": "import asyncio\nawait asyncio.sleep(1000)",
}

MONTY_BOMBS = {
    "list": "x = []\nwhile True: x.append([0] * 1000)",
    "texts": "x = []\nwhile True: x.append('a' * 10**6 + str(len(x)))",
    "text doubled": "x = 'x'\nwhile True: x += x",
    "text repeated": "'x' * 10**11",
    "list repeated": "[0] * 10**10",
    "bytes repeated": "b'x' * 10**11",
    "bytes": "x = []\nwhile True: x.append(b'x' * 10**6 + bytes(len(x)))",
    "dictionary": "d, i = {}, 0\nwhile True:\n    d[i] = str(i)\n    i += 1",
    "set": "s, i = set(), 0\nwhile True:\n    s.add(str(i))\n    i += 1",
    "tuples": "x = ()\nwhile True: x = (x, [0] * 100)",
    "list of a range": "list(range(10**10))",
    "comprehension": "[str(i) for i in range(10**9)]",
    "whole number": "x = []\nwhile True: x.append(2**100000 + len(x))",
    "list extended": "x = [0] * 1000\nwhile True: x += x",
    "list sorted": "x = [0] * 1000\nwhile True: x = sorted(x + x)",
    "text joined": "x = ['x' * 1000] * 1000\nwhile True: x = [''.join(x)] * 10",
    "text replaced": "x = 'x' * 1000\nwhile True: x = x.replace('x', 'xx')",
}
