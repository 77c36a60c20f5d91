/** The server that executors start: shared, ended with the last of them, and never left behind. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { createCodeModeTool, GloveportExecutor, type RunOptions } from "../src/index.ts";
import { config, DEADLINE, settings } from "./support.ts";

/** Returns the ids of the servers that a process has started. */
function serversOf(parent: number): number[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map(Number).filter((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const isChild = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]) === parent;
      return isChild && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("--until-eof");
    } catch {
      return false; // it has ended meanwhile
    }
  });
}

function lives(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

async function ended(pid: number): Promise<void> {
  while (lives(pid)) await new Promise((resolve) => setTimeout(resolve, 20)); // the test's deadline ends it
}

test("executors share a server, which ends with the last of them", DEADLINE, async () => {
  const [first, second] = [new GloveportExecutor({ config }), new GloveportExecutor({ config })];
  const third = createCodeModeTool({ tools: {}, config });
  const found = await Promise.all([
    first.execute("1", {}),
    second.execute("2", {}),
    third.tool.execute({ code: "3" }),
  ]);
  assert.deepEqual(found.map(({ result }) => result), [1, 2, 3]);
  const [server, ...others] = serversOf(process.pid);
  assert.ok(server);
  assert.deepEqual(others, []);
  await first.dispose();
  await third.dispose();
  assert.ok(lives(server));
  assert.equal((await second.execute("4", {})).result, 4);
  await second.dispose();
  await second.dispose();
  await ended(server);
});

test("other settings have another server", DEADLINE, async () => {
  await using first = new GloveportExecutor({ config });
  await using second = new GloveportExecutor({ config: settings("other", "[limits]\nmax_calls = 7\n") });
  await Promise.all([first.execute("1", {}), second.execute("2", {})]);
  assert.equal(serversOf(process.pid).length, 2);
});

test("a server that was killed is replaced by the next execution", DEADLINE, async () => {
  await using executor = new GloveportExecutor({ config });
  await executor.execute("1", {});
  const [server] = serversOf(process.pid);
  assert.ok(server);
  const hanging = executor.execute("await new Promise((r) => setTimeout(r, 30_000))", {});
  const stopped = executor.execute("await codemode.kill({})", {
    kill: () => Promise.resolve(process.kill(server, "SIGKILL")),
  });
  assert.match((await stopped).error ?? "", /connection to Gloveport/);
  assert.match((await hanging).error ?? "", /connection to Gloveport/);
  await ended(server);
  assert.deepEqual(await executor.execute("2", {}), { result: 2, logs: [] });
});

const PARENT = fileURLToPath(new URL(`./parent${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url));

/** Starts a program that uses an executor with these options; returns it when its first execution has ended. */
async function startParent(options: RunOptions) {
  const parent = spawn(process.execPath, [PARENT, JSON.stringify(options)], { stdio: ["pipe", "pipe", "pipe"] });
  let logged = "";
  parent.stderr.on("data", (part: Buffer) => logged += part);
  const [line] = await once(createInterface(parent.stdout), "line") as [string];
  assert.equal(line, "42");
  return { parent, logged: () => logged };
}

for (const how of ["SIGKILL", "SIGTERM", "by itself"] as const) {
  test(`the server ends with the program that started it (${how})`, DEADLINE, async () => {
    const { parent } = await startParent({ config });
    const [server] = serversOf(parent.pid!);
    assert.ok(server);
    if (how === "by itself") parent.stdin.end();
    else parent.kill(how);
    await once(parent, "exit");
    await ended(server);
  });
}

test("logCode logs the text of programs; without it, nothing does", DEADLINE, async () => {
  const logs = await Promise.all([true, false].map(async (logCode) => {
    const { parent, logged } = await startParent({ config, logCode });
    parent.stdin.end();
    await once(parent, "close");
    return logged();
  }));
  assert.match(logs[0]!, /typescript program '6 \* 7'/);
  assert.equal(logs[1], "");
});
