/** The options of an executor, and what it returns when a run can't be made or does not end by itself. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { GloveportExecutor } from "../src/index.ts";
import { startLocalServer } from "../src/local_server.ts";
import { codemode, config, DEADLINE, executor, folder, recorded, settings } from "./support.ts";

const TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

/** Runs a command line in a terminal, as a person does who answers its question with `y`. */
async function inTerminal(line: string): Promise<void> {
  const running = promisify(execFile)("python", ["-c", TERMINAL, ...line.split(" ")]);
  running.child.stdin?.write("y\n");
  await running;
}

/** Returns how a run has ended, as the record has it. */
async function recordedEnd(run: string): Promise<{ status: string; value: unknown }> {
  const { stdout } = await promisify(execFile)("gloveport", ["runs", "show", run, "--json"]);
  return (JSON.parse(stdout) as { outcome: { status: string; value: unknown } }).outcome;
}

test("env is all that a program finds in process.env", DEADLINE, async () => {
  const found = await executor({ env: { CITY: "Oslo" } }).execute("({ ...process.env })", {});
  assert.deepEqual(found, { result: { CITY: "Oslo" }, logs: [] });
});

test("programs are TypeScript or JavaScript", DEADLINE, async () => {
  assert.equal((await executor().execute("enum N { Six = 6 }; N.Six * 7", {})).result, 42);
  assert.equal((await executor({ compiler: "javascript" }).execute("6 * 7", {})).result, 42);
});

test("CoffeeScript is compiled by the package of the application", DEADLINE, async () => {
  const coffee = executor({ compiler: "coffeescript" });
  const hello = recorded(({ name }: { name: string }) => `hello ${name}`);
  const found = await coffee.execute(
    'greet = (name) -> codemode.hello {name}\nreturn await greet "Ada"',
    codemode({ hello }),
  );
  assert.deepEqual(found, { result: "hello Ada", logs: [] });
});

test("without that package, CoffeeScript is refused with a hint", DEADLINE, async () => {
  const before = process.cwd();
  const elsewhere = join(folder, "elsewhere");
  mkdirSync(elsewhere);
  process.chdir(elsewhere);
  try {
    const { error } = await executor({ compiler: "coffeescript" }).execute("6 * 7", {});
    assert.match(error ?? "", /needs the package `coffeescript` \(`npm install coffeescript@/);
  } finally {
    process.chdir(before);
  }
});

test("eval and WebAssembly are off unless the settings and the executor allow them", DEADLINE, async () => {
  const config = settings("loose", "[sandbox]\nallow_eval = true\nallow_wasm = true\n");
  const evaluates = "eval('6 * 7')";
  assert.ok((await executor().execute(evaluates, {})).error);
  assert.deepEqual(await executor({ allowEval: true, config }).execute(evaluates, {}), { result: 42, logs: [] });
  assert.match((await executor({ allowEval: true }).execute(evaluates, {})).error ?? "", /allow_eval is off here/);
  const compiles =
    "new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])) instanceof WebAssembly.Module";
  assert.ok((await executor().execute(compiles, {})).error);
  assert.deepEqual(await executor({ allowWasm: true, config }).execute(compiles, {}), { result: true, logs: [] });
});

test("limits of a run hold", DEADLINE, async () => {
  const call = recorded(() => 1);
  const found = await executor({ limits: { max_calls: 2 } })
    .execute("for (let i = 0; i < 5; i++) await codemode.call({})", codemode({ call }));
  assert.match(found.error ?? "", /max_calls|calls/);
  assert.equal(call.calls.length, 2);
});

test(
  "a call that asks gives an error with the command that approves it, and then the program goes on",
  DEADLINE,
  async () => {
    const config = settings("asking", '[[rules]]\nask = "caller.pay"\n');
    let answered = () => {};
    const paid = new Promise<void>((resolve) => answered = resolve);
    const pay = recorded(() => answered());
    const code = "await codemode.pay({ amount: 5 }); return 42";
    const { error = "" } = await executor({ config }).execute(code, codemode({ pay }));
    const [, run = "", command = ""] = /^the run ([\w-]+) waits for a person to approve a call: (.+)$/.exec(error) ??
      [];
    assert.equal(command, `gloveport approvals approve --run ${run}`);
    assert.deepEqual(pay.calls, []);
    await inTerminal(command);
    await paid;
    assert.deepEqual(pay.calls, [[{ amount: 5 }]]);
    let end = await recordedEnd(run);
    while (end.status !== "completed") end = await recordedEnd(run); // the test's deadline ends it
    assert.equal(end.value, 42);
  },
);

test("url names a server that runs already, and GLOVEPORT_TOKEN is its token", DEADLINE, async () => {
  const { url, token, stop } = await startLocalServer({ config });
  try {
    await using given = new GloveportExecutor({ url, token });
    assert.deepEqual(await given.execute("6 * 7", {}), { result: 42, logs: [] });
    process.env.GLOVEPORT_TOKEN = token;
    await using found = new GloveportExecutor({ url });
    assert.deepEqual(await found.execute("6 * 7", {}), { result: 42, logs: [] });
    await using wrong = new GloveportExecutor({ url, token: "wrong" });
    assert.match((await wrong.execute("6 * 7", {})).error ?? "", /status 401: check the token/);
  } finally {
    delete process.env.GLOVEPORT_TOKEN;
    await stop();
  }
});

test("an aborted run ends", DEADLINE, async () => {
  const stop = new AbortController();
  const wait = recorded(() => {
    stop.abort();
    return new Promise(() => {});
  });
  const found = await executor().execute("await codemode.wait({})", codemode({ wait }), { signal: stop.signal });
  assert.match(found.error ?? "", /cancelled/);
});

test("a result that is too large for one message is an error of its call alone", DEADLINE, async () => {
  const large = recorded(() => "x".repeat(5 * 1024 * 1024));
  const small = recorded(() => "small");
  const code = "const found = await codemode.large({}).catch((e) => e.message); [found, await codemode.small({})]";
  const { result } = await executor().execute(code, codemode({ large, small }));
  assert.deepEqual(result, ["the result of `large` has more than 4 MiB of JSON: return less at a time", "small"]);
});

test("nothing makes it throw", DEADLINE, async () => {
  const broken = [
    new GloveportExecutor({ command: "no-such-command" }),
    new GloveportExecutor({ url: "http://127.0.0.1:9", token: "x" }),
    new GloveportExecutor({ command: "false" }),
    executor({ timeout: -1 }),
    executor({ timeout: Number.NaN }),
  ];
  for (const each of broken) {
    const found = await each.execute("1", {});
    assert.equal(found.result, undefined);
    assert.ok(found.error);
    await each.dispose();
  }
  assert.match((await broken[0]!.execute("1", {})).error ?? "", /disposed/);
});
