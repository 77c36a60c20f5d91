"""The guest's contract (design §2), the same for all engines: one list of behaviours, one expected outcome each."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from gloveport import Event, Gloveport, Outcome
from tests.conftest import TOOLS, children_of
from tests.engines import AS_LANGUAGE, ENGINES, LACKS, REMOTE_ENGINES, Engine, Per, assert_lacks, program_of, said
from tests.sandbox_hosts import caller_settings, served_sandbox_host

pytestmark = pytest.mark.integration

UNSAID: Any = object()
EVERYWHERE = (
    *ENGINES,
    Engine("auto", "typescript"),
    *(engine for engine in REMOTE_ENGINES if engine.kind in os.environ.get("REMOTE", "deno cpython").split()),
)
"""Here, and at a sandbox host: by default, the first engine of each language. `make remote` tries all of them."""


@pytest.fixture(scope="module")
async def port(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gloveport]:
    with served_sandbox_host(tmp_path_factory.mktemp("host")) as (url, token):
        async with Gloveport(tools=TOOLS, config=caller_settings(url, token=token)) as opened:
            yield opened


@dataclass(frozen=True)
class Behaviour:
    """A program in each language, and what all come to.

    `monty` says what differs there: a program of the same meaning in less of a language, or that it LACKS something.

    `error` gives some fields of the failure: a text, or each text of a tuple, must be contained in its field. Without `error` there
    must be no failure. `warnings` lists every warning by a part of its text. What is UNSAID is not compared.
    """

    name: str
    typescript: str | None
    python: str | None
    value: Any = UNSAID
    error: dict[str, Any] = field(default_factory=dict)
    logs: Any = UNSAID
    emitted: Any = UNSAID
    calls: Any = UNSAID
    warnings: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    monty: Any = AS_LANGUAGE

    @property
    def programs(self) -> Per:
        """The program for each engine."""
        return Per(self.typescript, self.python, self.monty)


B = Behaviour
CATCH = "try { await %s } catch (e: any) { return %s }"
EXCEPT = "try:\n    await %s\nexcept ToolError as e:\n    r = %s\nr"
FIELDS = Per("[e.code, e.tool, e.message, e.status, e.data, e.retryable]", "[e.code, e.tool, e.message, e.status, e.data, e.retryable]")  # fmt: skip

RAISED_AGAIN = {"code": "quota", "type": "ToolError", "message": "no", "tool": "fail"}
SLEEPS = """
import asyncio, time
from datetime import date, datetime, timezone
began, clock = time.time(), time.monotonic()
await asyncio.gather(asyncio.sleep(0.2), asyncio.sleep(0.1), asyncio.sleep(0))
time.sleep(0.05)
spent = [time.time() - began, time.monotonic() - clock, datetime.now(timezone.utc).timestamp() - began]
[0.25 <= seconds < 30 for seconds in spent] + [date.today() == datetime.now().date()]
"""

BEHAVIOURS = (
    # Forms.
    B("nothing", "", "", value=None),
    B("a comment", "// nothing", "# nothing", value=None),
    B("a bare object", "{a: 1, b: 2}", "{'a': 1, 'b': 2}", value={"a": 1, "b": 2}),
    B("a trailing expression", "const a = 1;\na + 1", "a = 1\na + 1", value=2),
    B("a return", "if (true) return 1;\nreturn 2", "if True:\n    return 1\nreturn 2", value=1),
    B("a function", "async () => 5", "async def main():\n    return 5", value=5),
    B("a function that takes tools", "async (tools) => tools.add(1, 2)", "async def main(tools):\n    return await tools.add(1, 2)", value=3),
    B("a function that takes input and tools", "async (input, t) => t.add(input.n, 1)", "async def main(input, t):\n    return await t.add(input['n'], 1)", value=3, options={"input": {"n": 2}}),
    B("a fence with prose around it", "Sure:\n```ts\nreturn 1 + 1\n```\nDone.", "Sure:\n```python\n1 + 1\n```\nDone.", value=2),
    # Calls.
    B("one object", "await tools.add({a: 1, b: 2})", "await tools.add({'a': 1, 'b': 2})", value=3, calls=[("add", {"a": 1, "b": 2}, "ok")]),
    B("positionals", "await tools.add(1, 2)", "await tools.add(1, 2)", value=3, calls=[("add", {"a": 1, "b": 2}, "ok")]),
    B("keywords", None, "await tools.add(a=1, b=2)", value=3, calls=[("add", {"a": 1, "b": 2}, "ok")]),
    B("positionals and keywords", None, "await tools.add(1, b=2)", value=3, calls=[("add", {"a": 1, "b": 2}, "ok")]),
    B("positionals and keywords of a built-in", None, "len(await tools.search('weather', limit=1))", value=1, calls=[]),
    B("nothing given", "await tools.echo()", "await tools.echo()", value=None, calls=[("echo", {}, "ok")]),
    B("a default", "(await tools.get_weather('Oslo')).days", "(await tools.get_weather('Oslo'))['days']", value=1),
    B("by the source", "await tools.local.add(1, 2)", "await tools.local.add(1, 2)", value=3),
    B("by codemode", "await codemode.add(1, 2)", "await codemode.add(1, 2)", value=3),
    B("by the source's own global", "await local.add(1, 2)", "await local.add(1, 2)", value=3),
    B("by ns:tool", "await tools['local:add'](1, 2)", "await tools['local:add'](1, 2)", value=3),
    B("by another name", "const f = tools.add; await f(1, 2)", "f = tools.add\nawait f(1, 2)", value=3),
    B("in parallel", "await Promise.all([1, 2, 3].map((n) => tools.add(n, n)))", "import asyncio\nawait asyncio.gather(*(tools.add(n, n) for n in [1, 2, 3]))", value=[2, 4, 6]),
    B("printing a tool calls nothing", "console.log(`${tools.add}`.length > 0)", "print(len(str(tools.add)) > 0)", calls=[]),
    # Wrong calls.
    B("an unknown tool", "await tools.add(1, 1)\nawait tools.get_wether({city: 'Oslo'})", "await tools.add(1, 1)\nawait tools.get_wether({'city': 'Oslo'})",
      error={"code": "unknown-tool", "message": "no tool `tools.get_wether`; did you mean `tools.get_weather`?", "line": 2, "column": 13, "frame": "2 | await tools.get_wether", "tool": "get_wether", "hint": "tools.search"}, calls=[]),
    B("an unknown tool that only the call shows", f"const name = 'get_' + 'wether';\n{CATCH % ('tools[name]({})', '[e.code, e.message]')}", f"name = 'get_' + 'wether'\n{EXCEPT % ('tools[name]({})', '[e.code, e.message]')}",
      value=["unknown-tool", "no tool `tools.get_wether`; did you mean `tools.get_weather`?"], calls=[]),
    B("an unknown argument", "await tools.get_weather({cty: 'Oslo'})", "await tools.get_weather({'cty': 'Oslo'})", error={"code": "bad-arguments", "message": "`city`", "line": 1, "tool": "get_weather"}, calls=[]),
    B("an unknown keyword", None, "await tools.get_weather(cty='Oslo')", error={"code": "bad-arguments", "message": "`city`", "line": 1}, calls=[]),
    B("an unknown argument that only the call shows", f"const args: any = {{cty: 1}};\n{CATCH % ('tools.get_weather(args)', '[e.code, e.tool, e.hint]')}", f"args = {{'cty': 1}}\n{EXCEPT % ('tools.get_weather(args)', '[e.code, e.tool, e.hint]')}",
      value=["bad-arguments", "get_weather", 'see tools.describe("get_weather")'], calls=[]),
    B("an unknown tool with positionals and keywords", None, "name = 'get_' + 'wether'\nawait tools[name]('Oslo', days=2)", error={"code": "unknown-tool", "message": "did you mean `tools.get_weather`?", "line": 2}, calls=[]),
    B("a wrong part of a description", "await tools.describe('add', {at: '!'})", "await tools.describe('add', at='!')", error={"code": "bad-arguments", "message": "can't show this part"}, calls=[]),
    B("an argument given twice", None, "await tools.add(1, a=2)", error={"code": "bad-arguments", "message": "`tools.add` gets `a` twice, by position and by keyword", "line": 1, "column": 20}, calls=[]),
    B("an argument given twice that only the call shows", None, f"more = {{'a': 2}}\n{EXCEPT % ('tools.add(1, **more)', '[e.code, e.tool, str(e)]')}", value=["bad-arguments", "add", "bad arguments for `tools.add`: it got `a` twice, by position and by keyword"], calls=[]),
    B("too many positionals beside a keyword", None, f"many, more = [1, 2, 3], {{'b': 2}}\n{EXCEPT % ('tools.add(*many, **more)', '[e.code, str(e)]')}", value=["bad-arguments", "bad arguments for `tools.add`: 3 values before its keywords are too many: its parameters are a, b"], calls=[]),
    B("a dict beside a keyword is the first argument", None, "await tools.add({'a': 1}, b=2)", error={"code": "bad-arguments", "message": "takes an integer as `a`, not the object"}, calls=[]),
    B("too many positionals", f"const many = [1, 2, 3];\n{CATCH % ('tools.add(...many)', 'e.code')}", f"many = [1, 2, 3]\n{EXCEPT % ('tools.add(*many)', 'e.code')}", value="bad-arguments"),
    B("tools is no function", "const t: any = tools;\ntry { await t() } catch (e: any) { return e.code }", "t = tools\ntry:\n    await t()\nexcept ToolError as e:\n    r = e.code\nr", value="unknown-tool"),
    # Failed calls.
    B("a failure that is caught", CATCH % ("tools.fail({message: 'no', code: 'quota', data: {left: 0}})", FIELDS.typescript), EXCEPT % ("tools.fail(message='no', code='quota', data={'left': 0})", FIELDS.python),
      value=["quota", "fail", "no", 418, {"left": 0}, True], calls=[("fail", {"message": "no", "code": "quota", "data": {"left": 0}}, "failed")]),
    B("a failure that is not caught", "const a = 1;\nawait tools.fail({message: 'no', code: 'quota', data: [1]})", "a = 1\nawait tools.fail(message='no', code='quota', data=[1])",
      error={"code": "quota", "type": "ToolError", "message": "no", "line": 2, "tool": "fail", "data": [1], "frame": "2 | await tools.fail"}, calls=[("fail", {"message": "no", "code": "quota", "data": [1]}, "failed")]),
    B("a failure below another error", "try { await tools.fail() } catch (e) { throw new Error('outer', {cause: e}) }", "try:\n    await tools.fail()\nexcept ToolError as e:\n    raise ValueError('outer') from e",
      error={"code": "program-failed", "message": "outer", "cause.code": "tool-failed", "cause.type": "ToolError", "cause.tool": "fail"}),
    B("a failure among other handlers", None, "try:\n    await tools.fail(message='no', code='quota')\nexcept (KeyError, ToolError) as e:\n    r = [isinstance(e, ToolError), e.code, str(e), repr(e), type(e).__name__]\nr", value=[True, "quota", "no", "ToolError('no')", "ToolError"]),
    B("a failure as an Exception", None, "try:\n    await tools.fail(code='quota')\nexcept Exception as e:\n    r = e.code\nr", value="quota"),
    B("a failure as one of several", None, "try:\n    await tools.fail(code='quota')\nexcept (ValueError, ToolError) as e: r = e.code\nr", value="quota"),
    B("a failure as a BaseException", None, "try:\n    await tools.fail(code='quota')\nexcept BaseException as e: r = e.code\nr", value="quota"),
    B("another exception beside ToolError", "try { (null as any).x } catch (e: any) { return [e instanceof ToolError, e.name] }", "try:\n    {}['x']\nexcept ToolError:\n    r = 1\nexcept KeyError as e:\n    r = [isinstance(e, ToolError), type(e).__name__]\nr", value=Per([False, "TypeError"], [False, "KeyError"])),
    B("a failure raised again", "try { await tools.fail({message: 'no', code: 'quota'}) } catch (e) { throw e }", "try:\n    await tools.fail(message='no', code='quota')\nexcept ToolError as e:\n    raise", error=RAISED_AGAIN),
    B("a failure raised again by name", None, "try:\n    await tools.fail(message='no', code='quota')\nexcept ToolError as e:\n    raise e", error=RAISED_AGAIN),
    B("a failure raised again from nothing", None, "try:\n    await tools.fail(message='no', code='quota')\nexcept ToolError as e:\n    raise e from None", error=RAISED_AGAIN),
    B("a ToolError of the program's own, caught", None, "def f():\n    raise ToolError('mine', code='own')\ntry:\n    f()\nexcept ToolError as e:\n    r = [str(e), e.code]\nr", value=["mine", "own"]),
    B("a ToolError of the program's own, not caught", None, "raise ToolError('mine', code='denied')", error={"code": "program-failed", "type": "ToolError", "message": "mine"}),
    B("whose a failure is, caught", CATCH % ("tools.fail({code: 'denied'})", "[e.code, e.origin]"), EXCEPT % ("tools.fail(code='denied')", "[e.code, e.origin]"), value=["denied", "tool"]),
    B("whose a failure of arguments is, caught", "const t: any = tools;\ntry { await t['add']({a: 1}) } catch (e: any) { return [e.code, e.origin] }", "try:\n    await getattr(tools, 'add')(a=1)\nexcept ToolError as e:\n    r = [e.code, e.origin]\nr", value=["bad-arguments", "gloveport"]),
    B("a tool's failure under a code of ours", "await tools.fail({message: 'no', code: 'denied'})", "await tools.fail(message='no', code='denied')", error={"code": "denied", "origin": "tool", "message": "no", "tool": "fail", "hint": None, "setting": None}),
    B("a tool's failure that claims to be ours", "try { await tools.fail({message: 'no', code: 'denied'}) } catch (e: any) { e.origin = 'gloveport'; throw e }", "try:\n    await tools.fail(message='no', code='denied')\nexcept ToolError as e:\n    e.origin = 'gloveport'\n    raise e", error={"code": "denied", "origin": "tool", "hint": None}),
    B("a tool's failure as another tool's", "try { await tools.fail({message: 'no', code: 'denied'}) } catch (e: any) { e.tool = 'add'; throw e }", "try:\n    await tools.fail(message='no', code='denied')\nexcept ToolError as e:\n    e.tool = 'add'\n    raise e", error={"code": "program-failed", "origin": "gloveport"}),
    B("an argument that is no data", CATCH % ("tools.echo({value: [() => 1]})", "[e.code, e.message]"), EXCEPT % ("tools.echo(value=[print])", "[e.code, str(e)]"), value=["bad-value", "tools.echo: argument.value[0] is a function: only data can cross; call it, or return what it gives"], calls=[]),
    B("an exception of the tool", CATCH % ("tools.crash()", "[e.code, e.message]"), EXCEPT % ("tools.crash()", "[e.code, e.message]"), value=["tool-failed", "KeyError: 'lost key'"]),
    B("the class of failures", CATCH % ("tools.fail()", "[e instanceof ToolError, e instanceof Error, e.name]"), EXCEPT % ("tools.fail()", "[isinstance(e, ToolError), isinstance(e, Exception), type(e).__name__]"), value=[True, True, "ToolError"]),
    B("a failure among parallel calls", "const all = await Promise.allSettled([tools.add(1, 2), tools.fail()]);\nreturn all.map((r) => r.status === 'fulfilled')", "import asyncio\nr = await asyncio.gather(tools.add(1, 2), tools.fail(), return_exceptions=True)\n[not isinstance(x, ToolError) for x in r]", value=[True, False]),
    B("a failure caught in one of several tasks", "const tried = (call: Promise<any>) => call.catch((e) => e.code);\nawait Promise.all([tried(tools.add(1, 2)), tried(tools.fail({code: 'quota'})), tried(tools.add(3, 4))])", "import asyncio\nasync def tried(call):\n    try:\n        return await call\n    except ToolError as e:\n        return e.code\nawait asyncio.gather(tried(tools.add(1, 2)), tried(tools.fail(code='quota')), tried(tools.add(3, 4)))", value=[3, "quota", 7]),
    # Looking around.
    B("search", "(await tools.search('weather')).map((t: any) => Object.keys(t).sort().concat(t.path))", "[sorted(t) + [t['path']] for t in await tools.search('weather')]", value=[["approval", "description", "kind", "path", "writes", "get_weather"]]),
    B("search with options", "(await tools.search({query: 'add', source: 'local', limit: 1})).map((t: any) => t.path)", "[t['path'] for t in await tools.search({'query': 'add', 'source': 'local', 'limit': 1})]", value=["add"]),
    B("search that was cut", "(await tools.search({query: '', limit: 2})).length", "len(await tools.search(query='', limit=2))", value=2, warnings=("tools.search('') gave 2 of 6 tools",)),
    B("describe", "const d = await tools.describe('add');\nreturn [d.path, d.parameters.map((p: any) => p.name), d.typescript.includes('a: number')]", "d = await tools.describe('add')\n[d['path'], [p['name'] for p in d['parameters']], 'a: number' in d['typescript']]", value=["add", ["a", "b"], True]),
    B("describe shows the types of parameters", "(await tools.describe('get_weather')).typescript.includes('city: string')", "'city: string' in (await tools.describe('get_weather'))['typescript']", value=True),
    B("names in a source", "['add' in local, 'ad' in local]", None, value=[True, False]),
    B("awaiting and printing tools", "await tools; await tools.add; console.log(`${tools.add}`, String(tools))", None, logs=[("log", "[tools.add] [tools]")], calls=[]),
    B("sources", "[await tools.sources(), await tools.executor.sources.list()]", "[await tools.sources(), await tools.executor.sources.list()]", value=[[{"name": "local", "kind": "function", "tools": 6}]] * 2),
    B("names", "['add' in tools, 'ad' in tools, Object.keys(tools).includes('add')]", "['add' in tools, 'ad' in tools, 'add' in list(tools)]", value=[True, False, True]),
    B("interfaces", "[__getToolInterface('add')!.includes('add'), __interfaces.includes('get_weather')]", "[('add' in __getToolInterface('add')), ('get_weather' in __interfaces)]", value=[True, True]),
    # What else it finds.
    B("output", "console.log('one', 1); console.error('two')", "import sys\nprint('one', 1)\nprint('two', file=sys.stderr)", logs=[("log", "one 1"), ("error", "two")]),
    B("output of data", "console.log('hello', {a: 1})", "print('hello', {'a': 1})", logs=Per([("log", "hello { a: 1 }")], [("log", "hello {'a': 1}")])),
    B("output by lines", "console.log('a\\nb', 1); console.error('no'); console.log('end')", "import sys\nprint('a\\nb', 1)\nprint('no', file=sys.stderr)\nprint('end', end='')", logs=Per([("log", "a\nb 1"), ("error", "no"), ("log", "end")], [("log", "a"), ("log", "b 1"), ("error", "no"), ("log", "end")])),
    B("levels", "console.warn('careful'); console.error('bad')", "import logging\nlogging.warning('careful')\nlogging.error('bad')", logs=Per([("warn", "careful"), ("error", "bad")], [("warn", "WARNING:root:careful"), ("error", "ERROR:root:bad")]), monty=LACKS),
    B("output that is cut", "for (let i = 0; i < 50; i++) console.log('x'.repeat(100))", "for i in range(50):\n    print('x' * 100)", warnings=("bytes of output were left out (max_log_bytes)",), options={"limits": {"max_log_bytes": 1000}}),
    B("emit", "emit({a: 1}); emit('b')", "emit({'a': 1})\nemit('b')", emitted=({"a": 1}, "b")),
    B("step", "await step('one', async () => (await tools.add(1, 2)) + 1)", "async def one():\n    return (await tools.add(1, 2)) + 1\nawait step('one', one)", value=4),
    B("state", "state.n = 1; state.n + Object.keys(state).length", "state['n'] = 1\nstate['n'] + len(state)", value=2),
    B("input", "input.n + 1", "input['n'] + 1", value=3, options={"input": {"n": 2}}),
    B("no input is undefined", "typeof input", None, value="undefined"),
    B("no input", "input.n", "input['n']", error={"code": "program-failed", "hint": "the run was given no input", "setting": "input=…"}),
    B("env", "process.env", "import os\ndict(os.environ)", value={"REGION": "eu"}, options={"env": {"REGION": "eu"}}),
    B("env by getenv", None, "import os\n[os.environ['A'], os.getenv('A'), os.getenv('B'), os.getenv('B', 'x')]", value=["1", "1", None, "x"], options={"env": {"A": "1"}}),
    B("an empty env", "process.env", "import os\ndict(os.environ)", value={}),
    B("timers", "const a = Date.now(); await new Promise((r) => setTimeout(r, 30)); return Date.now() - a >= 29", "import asyncio, time\na = time.time()\nawait asyncio.sleep(0.03)\ntime.time() - a >= 0.029", value=True),
    B("sleeps overlap, and every clock is the host's", None, SLEEPS, value=[True, True, True, True]),
    B("polling while a call is under way", "let done = 0; tools.add(1, 2).then((n) => { done = n });\nlet turns = 0; while (!done) { turns++; await new Promise((r) => setTimeout(r, 0)) }\nreturn [done, turns > 0]", "import asyncio\ndone = []\nasync def call():\n    done.append(await tools.add(1, 2))\nasync def poll():\n    turns = 0\n    while not done:\n        await asyncio.sleep(0)\n        turns += 1\n    return [done[0], turns > 0]\n(await asyncio.gather(call(), poll()))[1]", value=[3, True]),
    B("a call that returns while another is awaited", "const a = tools.add(1, 2); await new Promise((r) => setTimeout(r, 50)); const b = await tools.add(3, 4);\nreturn [await a, b]", "a = tools.add(1, 2)\nimport asyncio\nawait asyncio.sleep(0.05)\nb = await tools.add(3, 4)\n[await a, b]", value=[3, 7]),
    B("timers end with the program", "setTimeout(() => console.log('late'), 60000); setInterval(() => {}, 1000); 5", "import asyncio\nasyncio.get_running_loop().call_later(60, print, 'late')\n5", value=5, logs=[], monty=LACKS),
    B("a timeout around a call", "await Promise.race([tools.forever(), new Promise((r) => setTimeout(() => r('late'), 20))])", "import asyncio\ntry:\n    r = await asyncio.wait_for(tools.forever(), 0.02)\nexcept asyncio.TimeoutError:\n    r = 'late'\nr", value="late", warnings=("the program ended before tools.forever did (it failed)", "await every call"), options={"limits": {"wall_seconds": 1}}, monty=LACKS),
    B("a bare tool name", "get_weather('Oslo')", "get_weather('Oslo')", error={"code": "program-failed", "line": 1, "hint": "did you mean `tools.get_weather(…)`?"}),
    B("what can't be imported", "import x from 'lodash';\nx", "import requests\nrequests", error={"code": "import-refused", "line": 1}, calls=[]),
    B("leaving the process", "process.exit(0)", "exit()", error={"code": "program-failed", "message": "is not offered here: return from the program"}),
    # How it ends.
    B("a call that was not awaited", "tools.add(1, 2); 'end'", "tools.add(1, 2)\n'end'", value="end", calls=[("add", {"a": 1, "b": 2}, "ok")], warnings=("the program ended before tools.add did (it succeeded)", "await every call")),
    B("a failure that nobody saw", "tools.fail({message: 'unseen'}); await tools.add(1, 2)", "tools.fail(message='unseen')\nawait tools.add(1, 2)", value=3, warnings=("unhandled rejection: ToolError: unseen",)),
    B("a rejection that nobody saw", "Promise.reject(new Error('lost')); await tools.add(1, 2)", None, value=3, warnings=("unhandled rejection: Error: lost",)),
    B("waiting for nothing", "await new Promise(() => {})", "import asyncio\nawait asyncio.Event().wait()", error={"code": "never-settles"}, monty=LACKS),
    B("an error and its place", "const f = () => {\n  throw new Error('oh');\n};\nf()", "def f():\n  raise ValueError('oh')\n\nf()", error={"code": "program-failed", "message": "oh", "line": 2, "column": Per(9, 3, 9, 13), "frame": Per(("2 |   throw new Error('oh');", "^"), ("2 |   raise ValueError('oh')", "^"))}),
    B("a missing member", "const x = 1;\nconst user: any = null;\nuser.name;", "print('hello')\nx = {}\nx['gone']", error={"code": "program-failed", "type": Per("TypeError", "KeyError"), "line": 3, "column": Per(6, 1, 1, 1), "frame": Per("user.name", "x['gone']")}),
    B("an error inside a function inside a fence", None, "Look:\n```python\ndef f(é, x):\n    return é + x['gone']\ntry:\n    1 / 0\nexcept ArithmeticError as e:\n    pass\nf('ü', {})\n```", error={"code": "program-failed", "type": "KeyError", "line": 4, "column": 16, "frame": "x['gone']"}),
    B("an error below a condition", "const n: number = 1;\nif (n > 0) {\n  throw new Error('oh');\n}", "n: int = 1\nif n > 0:\n  raise ValueError('oh')", error={"code": "program-failed", "message": "oh", "line": 3}),
    B("an error inside a fence", "Look:\n```ts\nconst a: any = null;\na.b\n```", "Look:\n```python\na = None\na.b\n```", error={"code": "program-failed", "type": Per("TypeError", "AttributeError"), "line": 4, "column": Per(3, 1, quickjs=1)}),
    B("an error after odd characters", "const a: any = null;\n'é😀', a.b", "a = None\n'é😀', a.b", error={"line": 2, "column": Per(9, 7, quickjs=7)}),
    B("a thrown string", 'throw "boom"', None, error={"code": "program-failed", "type": "string", "message": "boom"}),
    B("a thrown null", "throw null", None, error={"code": "program-failed", "type": "null", "message": "null"}),
    B("a thrown undefined", "throw undefined", None, error={"code": "program-failed", "type": "undefined", "message": "undefined"}),
    B("a thrown object", "throw {a: 1}", None, error={"code": "program-failed", "type": "object", "message": "{ a: 1 }"}),
    B("a thrown error without a message", 'throw Error("")', None, error={"code": "program-failed", "type": "Error", "message": "the program threw Error without a message"}),
    B("a rejection with a number", "await Promise.reject(7)", None, error={"code": "program-failed", "type": "number", "message": "7"}),
    B("a thrown error that throws", "class Odd extends Error { get message(): any { throw 1 } }\nthrow new Odd()", None, error={"code": "program-failed", "type": "Error"}),
    B("a thrown proxy that throws", "throw new Proxy(new Error('p'), { get() { throw 1 } })", None, error={"code": "program-failed", "type": "Error"}),
    B("a thrown AggregateError", "throw new AggregateError([new Error('a')], 'several')", None, error={"code": "program-failed", "type": "AggregateError", "message": "several"}),
    B("causes", "throw new Error('outer', {cause: new TypeError('inner')})", "raise ValueError('outer') from TypeError('inner')", error={"message": "outer", "cause.type": "TypeError", "cause.message": "inner"}),
    B("causes of causes", "throw new Error('outer', {cause: new TypeError('inner', {cause: new RangeError('root')})})", "try:\n    try:\n        raise KeyError('root')\n    except KeyError as e:\n        raise TypeError('inner') from e\nexcept TypeError as e:\n    raise ValueError('outer') from e", error={"message": "outer", "cause.type": "TypeError", "cause.message": "inner", "cause.cause.type": Per("RangeError", "KeyError"), "cause.cause.message": "root"}),
    B("a cause that is no error", "throw new Error('outer', {cause: new TypeError('inner', {cause: 'root'})})", None, error={"cause.type": "TypeError", "cause.cause.message": "root"}),
    B("bad syntax", "const a = 1;\nconst = 2", "a = 1\nb = = 2", error={"code": "syntax-error", "line": 2, "frame": "2 | "}, calls=[]),
    B("a value that is no data", "return {rows: [() => 1]}", "{'rows': [len]}", error={"code": "bad-value", "message": "result.rows[0] is a function"}),
    B("endless recursion", "const f = (n: number): number => f(n + 1) + 1; f(0)", "def f(n):\n    return f(n + 1) + 1\nf(0)", error={"code": "program-failed", "type": Per("RangeError", "RecursionError")}),
    # Limits.
    B("wall_seconds", "await tools.forever()", "await tools.forever()", error={"code": "time-limit", "message": "longer than 0.3 s", "setting": "raise wall_seconds"}, calls=[("forever", {}, "failed")], options={"limits": {"wall_seconds": 0.3}}),
    B("wall_seconds, asleep", "await new Promise((r) => setTimeout(r, 1e6))", "import asyncio\nawait asyncio.sleep(1000)", error={"code": "time-limit"}, options={"limits": {"wall_seconds": 0.3}}),
    B("wall_seconds, spinning", "while (true) {}", "while True: pass", error={"code": "time-limit"}, options={"limits": {"wall_seconds": 0.5}}),
    B("cpu_seconds", "while (true) {}", "while True: pass", error={"code": "cpu-limit", "setting": "cpu_seconds"}, options={"limits": {"cpu_seconds": 0.3}}),
    B("memory_mb", "const a: any[] = []; while (true) a.push({a: {b: a.length}})", "a = []\nwhile True: a.append(bytearray(b'x') * 10 ** 7)", error={"code": "memory-limit", "setting": "memory_mb"}, options={"limits": {"memory_mb": 64}}, monty="a = []\nwhile True: a.append(b'x' * 10 ** 7)"),
    B("max_calls", "while (true) await tools.add(1, 1).catch(() => 0)", "while True:\n    try:\n        await tools.add(1, 1)\n    except ToolError:\n        pass", error={"code": "call-limit", "message": "more than 5 calls"}, calls=[("add", {"a": 1, "b": 1}, "ok")] * 5, options={"limits": {"max_calls": 5}}),
    B("max_result_bytes", "return 'x'.repeat(2000)", "'x' * 2000", error={"code": "result-too-large"}, options={"limits": {"max_result_bytes": 1000}}),
    B("a result that holds itself twice, 60 times", None, None, error={"code": "result-too-large"}, monty="a = [1]\nfor _ in range(60): a = [a, a]\na"),
    B("max_result_bytes, emitted", "for (let i = 0; i < 9; i++) emit('x'.repeat(200))", "for i in range(9):\n    emit('x' * 200)", error={"code": "result-too-large"}, options={"limits": {"max_result_bytes": 1000}}),
    B("max_frame_bytes, result", "return 'x'.repeat(200000)", "'x' * 200000", error={"code": "result-too-large"}, options={"limits": {"max_frame_bytes": 65536}}),
    B("max_frame_bytes, argument", CATCH % ("tools.echo({value: 'x'.repeat(200000)})", "[e.code, e.tool]"), EXCEPT % ("tools.echo(value='x' * 200000)", "[e.code, e.tool]"), value=["frame-too-large", "echo"], calls=[], options={"limits": {"max_frame_bytes": 65536}}),
    B("max_code_bytes", "1 + 1 + 1 + 1", "1 + 1 + 1 + 1", error={"code": "code-too-large"}, options={"limits": {"max_code_bytes": 10}}),
)  # fmt: skip

SPELLINGS = (
    # Programs that come to 3, in TypeScript.
    Per("await tools.local.add({a: 1, b: 2})"),
    Per("await codemode.add({a: 1, b: 2})"),
    Per("await tools['local:add']({a: 1, b: 2})"),
    Per("await tools['add'](1, 2)"),
    Per("const { add } = tools; await add(1, 2)"),
    Per("const f = tools.add; await f({a: 1, b: 2})"),
    Per("async ({ add }) => add(1, 2)"),
    Per("export default async (t) => t.local.add(1, 2)"),
    Per("export default await tools.add(1, 2)"),
    Per("const main = async () => tools.add(1, 2)"),
    Per("Promise.resolve(tools.add).then((f) => f(1, 2))"),
    # In Python.
    Per(None, "await tools.local.add(a=1, b=2)"),
    Per(None, "await codemode.add(a=1, b=2)"),
    Per(None, "await local.add(a=1, b=2)"),
    Per(None, "await tools['local']['add'](1, 2)"),
    Per(None, "name = 'add'\nawait tools.local[name](1, 2)"),
    Per(None, "add = tools.local.add\nawait add(a=1, b=2)"),
    Per(None, "tools.add(a=1, b=2)"),
    Per(None, "return tools.add(a=1, b=2)"),
    Per(None, "return await tools.add(a=1, b=2)"),
    Per(None, "if True:\n    return await tools.add(a=1, b=2)\n4"),
    Per(None, "if False:\n    return 5\n1 + 2"),
    Per(None, "async def main():\n    return await tools.add(a=1, b=2)"),
    Per(None, "def main():\n    return tools.add(a=1, b=2)"),
    Per(None, "async def anything(given):\n    return await given.add(a=1, b=2)"),
    Per(None, "Here is the program:\n```python\nx = await tools.add(a=1, b=2)\nx\n```\nDone."),
    Per(None, "import asyncio\nsum(await asyncio.gather(tools.add(a=1, b=0), tools.add(a=2, b=0)))"),
    Per(None, None, "import asyncio\nasyncio.run(tools.add(a=1, b=2))"),
    Per(None, "call = tools.add(a=1, b=2)\nother = tools.add(a=5, b=6)\n(await call) + 0 * (await other)"),
    Per(None, "def gen():\n    yield 1\n    yield 2\nsum(gen())", None),
    Per(None, "(\n1 + 2\n)"),
    Per(None, "x = 3\n(x\n)"),
    Per(None, "a = 1; a + 2"),
    Per(None, "x = 3\nx;"),
    Per(None, "x = 1 + \\\n2\nx  # the end\n\n"),
    Per(None, "x = '''\n'''\nx.count('\\n') + 2"),
    Per(None, "x = 1\r\nx + 2\r\n"),
    Per(None, "x = 1\rx + 2"),
    Per(None, "class A:\n    def __init__(self, x):\n        self.x = x\nA(3).x"),
    Per(None, "await step('add', lambda: tools.add(1, 2))"),
    Per(None, "state['n'] = 3\nstate['n']"),
)
SPELLINGS_WITH_INPUT = (  # which is 1
    Per("input + 2", "input + 2"),
    Per("async (n) => n + 2", "async def main(n):\n    return n + 2"),
    Per(None, "async def main(input, tools):\n    return await tools.add(a=input, b=2)"),
    Per(None, "def main(tools, input):\n    return input + 2"),
    Per(None, "async def main(*given):\n    return len(given) + given[0]"),
)


def cases() -> list[Any]:
    return [
        pytest.param(engine, behaviour, id=f"{engine}-{behaviour.name}")
        for behaviour in BEHAVIOURS
        for engine in EVERYWHERE
        if program_of(behaviour.programs, engine) is not None
    ]


@pytest.mark.parametrize(("engine", "behaviour"), cases())
async def test_a_program_does_the_same_in_every_engine(port: Gloveport, engine: Engine, behaviour: Behaviour) -> None:
    code = program_of(behaviour.programs, engine)
    assert code is not None
    outcome = await port.run(code, language=engine.language, engine=engine.name, **behaviour.options)
    if engine.name == "auto":  # places in errors differ a little, as they do between the engines that it chooses from
        assert outcome.engine is not None
        engine = engine._replace(name=outcome.engine)
    if said(behaviour.programs, engine) is LACKS:
        assert_lacks(outcome, engine)
        return
    check_error(outcome, behaviour, engine)
    told = {
        "value": outcome.value,
        "logs": [(line.level, line.text) for line in outcome.logs],
        "emitted": outcome.emitted,
        "calls": [(call.tool, call.args, call.status) for call in outcome.calls],
    }
    for name, found in told.items():
        if getattr(behaviour, name) is not UNSAID:
            assert found == said(getattr(behaviour, name), engine), name
    assert len(outcome.warnings) == len(behaviour.warnings), outcome.warnings
    for part, warning in zip(behaviour.warnings, outcome.warnings, strict=True):
        assert part in warning
    most = behaviour.options.get("limits", {}).get("max_log_bytes")
    assert most is None or sum(len(line.text) for line in outcome.logs) <= most


@pytest.mark.parametrize(
    ("engine", "code", "options"),
    [
        pytest.param(engine, code, options)
        for spellings, options in ((SPELLINGS, {}), (SPELLINGS_WITH_INPUT, {"input": 1}))
        for spelling in spellings
        for engine in EVERYWHERE
        if (code := said(spelling, engine)) is not None
    ],
)
async def test_every_spelling_of_a_program_gives_its_value(
    port: Gloveport, engine: Engine, code: str, options: dict[str, Any]
) -> None:
    outcome = await port.run(code, language=engine.language, engine=engine.name, **options)
    assert outcome.error is None, outcome.error
    assert outcome.value == 3


def check_error(outcome: Outcome, behaviour: Behaviour, engine: Engine) -> None:
    assert (outcome.error is not None) == bool(behaviour.error), outcome.error
    assert outcome.status == ("failed" if behaviour.error else "completed")
    for path, expected in behaviour.error.items():
        found: Any = outcome.error
        for name in path.split("."):
            found = getattr(found, name)
        wanted = said(expected, engine)
        if isinstance(wanted, (str, tuple)):
            assert all(text in (found or "") for text in ([wanted] if isinstance(wanted, str) else wanted)), (path, found)
        else:
            assert found == wanted, path


@pytest.mark.parametrize("engine", EVERYWHERE, ids=str)
async def test_events_come_in_the_order_in_which_things_happen(port: Gloveport, engine: Engine) -> None:
    programs = Per(
        "console.log('one'); const c = tools.add(1, 2); emit(1); await c; console.log('two'); await tools.fail().catch(() => 0)",
        "print('one')\nc = tools.add(1, 2)\nemit(1)\nawait c\nprint('two')\ntry:\n    await tools.fail()\nexcept ToolError:\n    pass",
    )
    seen: list[Event] = []
    outcome = await port.run(said(programs, engine), language=engine.language, engine=engine.name, on_event=seen.append)
    kinds = [event.kind if event.call is None else f"{event.kind} {event.call.tool} {event.call.status}" for event in seen]
    first = ["log", "call-started add running", "call-ended add ok", "emit", "log"]
    assert kinds == [*first, "call-started fail running", "call-ended fail failed"]
    assert {event.run for event in seen} == {outcome.run}


@pytest.mark.parametrize("engine", ENGINES, ids=str)
async def test_cancelling_the_caller_ends_the_program_and_its_calls(engine: Engine) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def hang() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with Gloveport(tools=[hang], spare=0) as own:
        before = children_of(os.getpid())
        task = asyncio.create_task(own.run("await tools.hang()", language=engine.language, engine=engine.name))
        await started.wait()
        new = children_of(os.getpid()) - before  # other ports of this process may start some too, but end none of these
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert cancelled.is_set()
        assert new - children_of(os.getpid())


@pytest.mark.parametrize("engine", EVERYWHERE, ids=str)
async def test_one_run_leaves_nothing_for_the_next(port: Gloveport, engine: Engine) -> None:
    plant = Per(
        "globalThis.planted = 1; Object.prototype.planted = 1; Array.prototype.map = () => 5; state.x = 1; console.log = () => {}; Date.now = () => 5; return planted",
        "state['x'] = planted = 1\nToolError.planted = 1\nprint('here')\nplanted",
    )
    look = Per(
        "console.log('here'); return [typeof planted, ({}).planted, [1].map((x) => x), state, Date.now() > 5]",
        "print('here')\ntry:\n    r = planted\nexcept NameError:\n    r = [state, hasattr(ToolError, 'planted')]\nr",
    )
    planted = await port.run(said(plant, engine), language=engine.language, engine=engine.name)
    assert planted.value == 1, planted.error
    found = await port.run(said(look, engine), language=engine.language, engine=engine.name)
    assert found.value == said(Per(["undefined", None, [1], {}, True], [{}, False]), engine), found.error
    assert found.logs[0].text == "here"
