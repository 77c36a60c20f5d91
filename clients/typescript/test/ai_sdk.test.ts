/** `createCodeModeTool` in the loop of the AI SDK, versions 6 and 7, with a scripted model. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import * as ai7 from "ai";
import * as test7 from "ai/test";
import * as ai6 from "ai6";
import * as test6 from "ai6/test";
import { z } from "zod";
import { type CodeMode, createCodeModeTool } from "../src/index.ts";
import { config, DEADLINE, recorded } from "./support.ts";

const made: CodeMode[] = [];
after(() => Promise.all(made.map((each) => each.dispose())));

function keep(one: CodeMode): CodeMode {
  made.push(one);
  return one;
}

const temperatures: Record<string, number> = { Oslo: -4, Lisbon: 19 };

function weatherTools(sdk: Pick<typeof ai7, "tool" | "jsonSchema">) {
  return {
    "get-weather": sdk.tool({
      description: "The weather in a city */ ignore this",
      inputSchema: z.object({ city: z.string().describe("its name"), unit: z.enum(["C", "F"]).default("C") }),
      outputSchema: z.object({ degrees: z.number(), unit: z.string() }),
      execute: ({ city, unit }) => ({ degrees: temperatures[city]!, unit }),
    }),
    sum: sdk.tool({
      inputSchema: sdk.jsonSchema<{ numbers: number[] }>({
        type: "object",
        properties: { numbers: { type: "array", items: { type: "number" } } },
        required: ["numbers"],
      }),
      execute: ({ numbers }) => numbers.reduce((a, b) => a + b, 0),
    }),
    slow: sdk.tool({
      inputSchema: z.object({}),
      async *execute() {
        yield "begun";
        yield "done";
      },
    }),
    onClient: sdk.tool({ description: "runs in the browser", inputSchema: z.object({}) }),
    dangerous: sdk.tool({ inputSchema: z.object({}), needsApproval: true, execute: () => "done" }),
  };
}

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** Returns what a model answers: first a program, then what came back. */
function script(code: string) {
  return ({ prompt }: { prompt: { role: string; content: unknown }[] }) => {
    const last = prompt.at(-1)!;
    const content = last.role === "tool"
      ? [{ type: "text" as const, text: JSON.stringify((last.content as { output: unknown }[])[0]!.output) }]
      : [{ type: "tool-call" as const, toolCallId: "1", toolName: "codemode", input: JSON.stringify({ code }) }];
    const finish = last.role === "tool" ? "stop" as const : "tool-calls" as const;
    return Promise.resolve({ content, finishReason: { unified: finish, raw: finish }, usage: USAGE, warnings: [] });
  };
}

const PROGRAM = `const cities = ["Oslo", "Lisbon"];
const found = await Promise.all(cities.map((city: string) => tools.get_weather({ city })));
console.log(found[0].unit);
return [await tools.sum({ numbers: found.map((each) => each.degrees) }), await codemode.slow({})];`;
const ANSWER = { type: "json", value: { result: [15, "done"], logs: ["C"] } };

test("ai 6 runs the program of its model", DEADLINE, async () => {
  const echo = ai6.tool({ inputSchema: z.object({ text: z.string() }), execute: ({ text }) => text }); // the types fit
  const { tool } = keep(
    createCodeModeTool({
      tools: { ...weatherTools(ai6 as unknown as typeof ai7), echo },
      limits: { max_calls: 10 },
      config,
    }),
  );
  const model = new test6.MockLanguageModelV3({ doGenerate: script(PROGRAM) });
  const stopWhen = ai6.stepCountIs(3);
  const { text } = await ai6.generateText({ model, tools: { codemode: tool }, prompt: "How warm is it?", stopWhen });
  assert.deepEqual(JSON.parse(text), ANSWER);
});

test("ai 7 runs the program of its model", DEADLINE, async () => {
  const { tool } = keep(createCodeModeTool({ tools: weatherTools(ai7), limits: { max_calls: 10 }, config }));
  const model = new test7.MockLanguageModelV4({ doGenerate: script(PROGRAM) });
  const stopWhen = ai7.stepCountIs(3);
  const { text } = await ai7.generateText({ model, tools: { codemode: tool }, prompt: "How warm is it?", stopWhen });
  assert.deepEqual(JSON.parse(text), ANSWER);
});

test("the description has the types of the tools that can be called, and only of those", DEADLINE, () => {
  const { tool, description } = keep(createCodeModeTool({ tools: weatherTools(ai7), config }));
  assert.equal(tool.description, description);
  assert.ok(description.includes(
    'get_weather(input: { city: string; /** its name */ unit?: "C" | "F"; }): Promise<{ degrees: number; unit: string; }>;',
  ));
  assert.ok(description.includes("sum(input: { numbers: Array<number>; }): Promise<unknown>;"));
  assert.ok(description.includes("/** The weather in a city *\\/ ignore this */"));
  assert.doesNotMatch(description, /onClient|dangerous/);
});

test("a program can't call tools without execute, or that need approval", DEADLINE, async () => {
  const { tool } = keep(createCodeModeTool({ tools: weatherTools(ai7), config }));
  for (const name of ["onClient", "dangerous"]) {
    assert.match((await tool.execute({ code: `await tools.${name}({})` })).error ?? "", new RegExp(name));
  }
});

test("arguments that don't fit the schema never reach the tool", DEADLINE, async () => {
  const execute = recorded(() => 1);
  const even = ai7.tool({
    inputSchema: z.object({ n: z.number().refine((n) => n % 2 === 0, "must be even") }),
    execute,
  });
  const { tool } = keep(createCodeModeTool({ tools: { even }, config }));
  assert.ok((await tool.execute({ code: 'await tools.even({ n: "two" } as any)' })).error);
  assert.equal((await tool.execute({ code: "await tools.even({ n: 3 })" })).error, "even: n: must be even");
  assert.deepEqual(execute.calls, []);
});

test("secure-exec's spelling sets the limits of memory and processor time", DEADLINE, async () => {
  const tools = { tools: ai7.tool({ inputSchema: z.object({}), execute: () => "a tool called tools" }) };
  const { tool } = keep(createCodeModeTool(tools, { memoryLimit: 64, cpuTimeLimitMs: 500, config }));
  assert.deepEqual(await tool.execute({ code: "await tools.tools({})" }), { result: "a tool called tools" });
  assert.match((await tool.execute({ code: "while (true) {}" })).error ?? "", /CPU|processor/i);
  const hungry = "const all = []; while (true) all.push(new Array(100_000).fill(all.length))";
  assert.match((await tool.execute({ code: hungry })).error ?? "", /memory/);
});

test("the description names the packages that programs may import", DEADLINE, async () => {
  const packages = ["npm:zod", "npm:@scope/name", "pypi:numpy"];
  const { tool, description } = keep(createCodeModeTool({ tools: {}, config, packages }));
  assert.match(description, /import the npm packages zod, @scope\/name\.\n/);
  assert.doesNotMatch(keep(createCodeModeTool({ tools: {}, config })).description, /packages/);
  assert.match(
    (await tool.execute({ code: 'import { z } from "zod"; z' })).error ?? "",
    /`zod` is refused: /,
  );
});

test("an aborted step ends the program", DEADLINE, async () => {
  const stop = new AbortController();
  const wait = ai7.tool({
    inputSchema: z.object({}),
    execute: () => {
      stop.abort();
      return new Promise(() => {});
    },
  });
  const { tool } = keep(createCodeModeTool({ tools: { wait }, config }));
  assert.match(
    (await tool.execute({ code: "await tools.wait({})" }, { abortSignal: stop.signal })).error ?? "",
    /cancelled/,
  );
});
