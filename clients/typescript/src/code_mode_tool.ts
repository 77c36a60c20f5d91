/** `createCodeModeTool`: one tool for the AI SDK. The model writes a program that calls your tools, and Gloveport runs it. */

import type { Answer } from "./connection.ts";
import type { SessionFilesystem } from "./filesystem.ts";
import type { Limits, OfferedTool } from "./messages.ts";
import { identifierFor } from "./program.ts";
import { type ExecuteResult, type Offer, Runner, type RunOptions } from "./runner.ts";
import { comment, type JsonSchema, jsonSchemaOf, typeText, validate } from "./schemas.ts";

/** A tool of the AI SDK, as far as it is used here. */
export interface SdkTool {
  description?: unknown;
  inputSchema?: unknown;
  outputSchema?: unknown;
  needsApproval?: unknown;
  // deno-lint-ignore no-explicit-any -- each tool has its own types
  execute?: ((input: any, options: any) => any) | undefined;
}

/** Tools by name. */
export type SdkTools = Record<string, SdkTool>;

/** What both spellings have. */
export interface FilesOption {
  /** Files that the programs share: with `true` until `dispose`, or the `filesystem` of another tool. */
  filesystem?: boolean | SessionFilesystem;
}

/** Our own spelling: everything in one object. */
export interface CodeModeOptions extends RunOptions, FilesOption {
  tools: SdkTools;
}

/** The options of secure-exec. */
export interface SecureExecOptions extends Omit<RunOptions, "limits">, FilesOption {
  /** The memory that a program may use, in MB. */
  memoryLimit?: number;
  /** The processor time that a program may use, in milliseconds. */
  cpuTimeLimitMs?: number;
}

/** What the model sends. */
export interface CodeInput {
  code: string;
}

/** The tool, as `generateText({tools: {codemode: tool}})` takes it. */
export interface CodeModeTool {
  description: string;
  inputSchema: CodeInputSchema;
  execute(input: CodeInput, options?: ExecutionOptions): Promise<ExecuteResult>;
}

/** A Standard Schema of `CodeInput`. */
export interface CodeInputSchema {
  "~standard": {
    version: 1;
    vendor: "gloveport";
    types?: { input: CodeInput; output: CodeInput } | undefined;
    validate(value: unknown): { value: CodeInput } | { issues: { message: string }[] };
    jsonSchema: { input(): Record<string, unknown>; output(): Record<string, unknown> };
  };
}

interface ExecutionOptions {
  abortSignal?: AbortSignal | undefined;
}

/** The tool, the text that describes your tools to the model, and what ends the server. */
export interface CodeMode {
  tool: CodeModeTool;
  description: string;
  /** With a `session` or a `filesystem`: puts files where programs find them, and takes out what they have written. */
  filesystem: SessionFilesystem | undefined;
  dispose(): Promise<void>;
}

/** Returns one tool that runs programs with access to all of `tools`. Those without `execute`, or that need approval, are left out. */
export function createCodeModeTool(options: CodeModeOptions): CodeMode;
export function createCodeModeTool(tools: SdkTools, options?: SecureExecOptions): CodeMode;
export function createCodeModeTool(first: CodeModeOptions | SdkTools, second?: SecureExecOptions): CodeMode {
  const { tools, filesystem: files, ...options } = second === undefined && isOptions(first)
    ? first
    : fromSecureExec(first as SdkTools, second ?? {});
  const callable = Object.entries(tools).filter(([, tool]) =>
    typeof tool.execute === "function" && !tool.needsApproval
  );
  const names = new Map(callable.map(([name, tool]) => [identifierFor(name), tool]));
  if (names.size < callable.length) throw new TypeError("two tools have the same name once it is an identifier");
  const own = files === true && options.session === undefined ? `code-mode-${crypto.randomUUID()}` : undefined;
  const shared = typeof files === "object" ? files.session : undefined;
  const session = options.session ?? own ?? shared;
  if (shared !== undefined && session !== shared) throw new TypeError("give a session or a filesystem, not both");
  const runner = new Runner({ ...options, ...(session !== undefined && { session }) });
  const filesystem = runner.filesystem;
  const description = describe(names, filesystem !== undefined, options.packages);
  const dispose = async () => {
    if (own !== undefined && runner.isStarted) await filesystem?.clear().catch(() => {}); // it may have none
    await runner.dispose();
  };
  const tool: CodeModeTool = {
    description,
    inputSchema: CODE_INPUT,
    execute: async ({ code }, options) => {
      const { logs, ...found } = await runner.run(code, () => offer(names, options), options?.abortSignal);
      return logs?.length ? { ...found, logs } : found; // the model need not read that there are none
    },
  };
  return { tool, description, filesystem, dispose };
}

/** Whether the one argument is ours: a set of tools could have one called `tools`, which then has `execute` or a schema. */
function isOptions(given: CodeModeOptions | SdkTools): given is CodeModeOptions {
  const tools: object | undefined = given.tools;
  return tools !== undefined && !("execute" in tools && typeof tools.execute === "function") &&
    !("inputSchema" in tools);
}

function fromSecureExec(tools: SdkTools, { memoryLimit, cpuTimeLimitMs, ...rest }: SecureExecOptions): CodeModeOptions {
  const limits: Limits = {
    ...(memoryLimit !== undefined && { memory_mb: memoryLimit }),
    ...(cpuTimeLimitMs !== undefined && { cpu_seconds: cpuTimeLimitMs / 1000 }),
  };
  return { ...rest, tools, limits };
}

function offer(tools: ReadonlyMap<string, SdkTool>, options: ExecutionOptions = {}): Offer {
  const offered: OfferedTool[] = [];
  const answers = new Map<string, Answer>();
  for (const [name, tool] of tools) {
    const inputSchema = jsonSchemaOf(tool.inputSchema);
    const outputSchema = jsonSchemaOf(tool.outputSchema, "output");
    offered.push({
      name,
      ...(typeof tool.description === "string" && { description: tool.description }),
      ...(inputSchema && { inputSchema }),
      ...(outputSchema && { outputSchema }),
    });
    answers.set(name, (input) => call(name, tool, input, options));
  }
  return { tools: offered, answers };
}

async function call(name: string, tool: SdkTool, input: unknown, options: ExecutionOptions): Promise<unknown> {
  const { value, problem } = await validate(tool.inputSchema, input ?? {});
  if (problem !== undefined) throw new TypeError(`${name}: ${problem}`);
  const result: unknown = await tool.execute?.(value, options);
  return isStream(result) ? await lastOf(result) : result;
}

function isStream(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

/** Returns the last value of a tool that reports its progress. */
async function lastOf(values: AsyncIterable<unknown>): Promise<unknown> {
  let last: unknown;
  for await (const value of values) last = value;
  return last;
}

const CODE_SCHEMA = {
  type: "object",
  properties: { code: { type: "string", description: "the program" } },
  required: ["code"],
  additionalProperties: false,
};

const CODE_INPUT: CodeInputSchema = {
  "~standard": {
    version: 1,
    vendor: "gloveport",
    validate: (value) => isCodeInput(value) ? { value } : { issues: [{ message: "`code` must be a text" }] },
    jsonSchema: { input: () => CODE_SCHEMA, output: () => CODE_SCHEMA },
  },
};

function isCodeInput(value: unknown): value is CodeInput {
  return typeof value === "object" && value !== null && "code" in value && typeof value.code === "string";
}

const INTRODUCTION = `Runs a TypeScript or JavaScript program in a sandbox without files and network.
The program calls the tools below with \`await\`, several at once with \`Promise.all\` where they don't depend on each other.
Return what you need to see. \`console.log\` is shown too. Answers with {result, logs}, or {error, logs}.`;

const FILES = `
Files below /workspace stay for later programs: \`import { readFile, writeFile } from "node:fs/promises"\`, or the global \`files\`.`;

/** Returns the text for the model: what the tool does, and the types of everything that a program can call. */
function describe(tools: ReadonlyMap<string, SdkTool>, hasFiles: boolean, packages?: string[]): string {
  const files = hasFiles ? INTRODUCTION.replace(" files and network", " network") + FILES : INTRODUCTION;
  const imports = packages?.filter((one) => one.startsWith("npm:")).map((one) => one.slice("npm:".length));
  const introduction = imports?.length ? `${files}\nIt may import the npm packages ${imports.join(", ")}.` : files;
  const lines = Array.from(tools, ([name, tool]) => {
    const note = typeof tool.description === "string" ? `  ${comment(tool.description)}\n` : "";
    const input: JsonSchema | undefined = jsonSchemaOf(tool.inputSchema);
    return `${note}  ${name}(input: ${typeText(input)}): Promise<${
      typeText(jsonSchemaOf(tool.outputSchema, "output"))
    }>;`;
  });
  return `${introduction}\n\ndeclare const tools: {\n${lines.join("\n")}\n};`;
}
