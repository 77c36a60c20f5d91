/** The messages between a caller and `gloveport serve`, at `/v1/host`: JSON texts on one WebSocket, for any number of runs. */

import type { Wire } from "./values.ts";

/** The limits of a run, by Gloveport's names; those of the server's settings are the highest. */
export interface Limits {
  wall_seconds?: number;
  cpu_seconds?: number;
  memory_mb?: number;
  max_calls?: number;
  max_concurrent_calls?: number;
  max_log_bytes?: number;
  max_result_bytes?: number;
  max_frame_bytes?: number;
  max_code_bytes?: number;
}

/** A tool of the caller, as a program sees it. */
export interface OfferedTool {
  name: string;
  description?: string;
  inputSchema?: object;
  outputSchema?: object;
  readOnly?: boolean;
  /** Whether a call brings the array of its arguments, as the program passed them, instead of one object. */
  positional?: boolean;
}

/** A program to run, and how. */
export interface RunRequest {
  code: string;
  language?: "typescript" | "javascript" | "python";
  input?: Wire;
  timeoutMs?: number;
  limits?: Limits;
  env?: Record<string, string>;
  engine?: string;
  allowEval?: boolean;
  allowWasm?: boolean;
  logCode?: boolean;
  session?: string;
  packages?: string[];
  tools: OfferedTool[];
}

/** An error, in the one shape that all of Gloveport uses. */
export interface Problem {
  code: string;
  message: string;
  hint?: string | null;
  data?: Wire;
}

/** A line that a program logged. */
export interface LogLine {
  level: string;
  text: string;
}

/** How a run ended, as `GET /v1/runs/ID` shows it. */
export interface Outcome {
  ok: boolean;
  run: string;
  status: "completed" | "failed" | "waiting" | "cancelled";
  value: Wire;
  error: (Problem & { tool?: string | null; line?: number | null }) | null;
  logs: LogLine[];
  waiting: string[];
}

/** What a caller sends. */
export type ToServer =
  | ({ type: "run"; run: string; unnamed: true; values: "tagged"; quiet: true } & RunRequest)
  | { type: "result"; run: string; call: number; value: Wire }
  | { type: "error"; run: string; call: number; error: { message: string; code?: string; data?: Wire } }
  | { type: "cancel"; run: string };

/** What the server sends. */
export type FromServer =
  | { type: "started"; run: string; id: string }
  | { type: "call"; run: string; call: number; tool: string; args: Wire }
  | ({ type: "log"; run: string } & LogLine)
  | { type: "emit"; run: string; value: Wire }
  | { type: "outcome"; run: string; outcome: Outcome }
  | { type: "refused"; run: string; error: Problem };
