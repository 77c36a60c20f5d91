/**
 * Gloveport for TypeScript: programs that a model wrote run in Gloveport's sandbox, and their calls come to your functions.
 *
 * @module
 */

export { type CodeMode, type CodeModeOptions, createCodeModeTool, type SecureExecOptions } from "./code_mode_tool.ts";
export type { FileEntry, SessionFilesystem } from "./filesystem.ts";
export { type ExecuteOptions, GloveportExecutor } from "./executor.ts";
export type { Limits } from "./messages.ts";
export type { Compiler, ResolvedProvider } from "./program.ts";
export type { ExecuteResult, RunOptions } from "./runner.ts";
