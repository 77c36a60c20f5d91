// The documents of the API, as far as the pages use them. docs/api.md describes them.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export type RunStatus = "running" | "waiting" | "interrupted" | "completed" | "failed" | "cancelled";
export type Role = "agent" | "host" | "approver" | "admin" | "monitor";

export interface Me {
  name: string;
  role: Role;
  version: string;
  sandbox: { strength: "full" | "kernel" | "none"; meaning: string; problem: string | null };
}

export interface Run {
  run: string;
  status: RunStatus;
  agent: string;
  language: string;
  engine: string;
  started: string;
  seconds: number | null;
  calls: number;
  error: string | null;
  obstacle: string | null;
  /** The first line of its program that says something. */
  title?: string;
}

export interface Page {
  next: string | null;
}

export interface RunPage extends Page {
  runs: Run[];
}

export interface Failure {
  code: string;
  type?: string | null;
  message: string;
  line?: number | null;
  column?: number | null;
  frame?: string | null;
  tool?: string | null;
  hint?: string | null;
  cause?: Failure | null;
  setting?: string | null;
  /** `tool` for an error with a code of the tool's own. */
  origin?: string | null;
}

export type CallStatus = "queued" | "waiting" | "running" | "ok" | "failed" | "planned" | "unknown";

/** What a person answered, after how many seconds. `asked` are the arguments that the program sent, if the person changed them. */
export interface CallApproval {
  approver: string;
  seconds: number;
  scope: string;
  asked: { [name: string]: Json } | null;
}

/** A call of a run. Times are seconds since the run began. */
export interface Call {
  id: number;
  tool: string;
  args: Json;
  status: CallStatus;
  started: number;
  seconds: number | null;
  error: string | null;
  origin: string | null;
  approval: CallApproval | null;
  setting: string | null;
  step: string | null;
}

export interface Usage {
  wall_seconds: number;
  cpu_seconds: number;
  memory_peak_mb: number | null;
  calls: number;
  log_bytes: number;
}

export interface LogLine {
  level: string;
  text: string;
}

export interface PlannedWrite {
  call: number;
  tool: string;
  args: { [name: string]: Json };
  line: number | null;
  unknown: string[];
  after: string[];
}

export interface Plan {
  run: string;
  agent: string;
  writes: PlannedWrite[];
  expires: number;
  notes: string[];
}

export interface Outcome {
  ok: boolean;
  run: string;
  status: RunStatus;
  value: Json;
  error: Failure | null;
  logs: LogLine[];
  emitted: Json[];
  calls: Call[];
  usage: Usage;
  warnings: string[];
  waiting: string[];
  plan: Plan | null;
  engine: string | null;
}

export interface RunDetails {
  run: Run;
  code: string;
  /** What the program got as `input`, if it got one. */
  input?: Json;
  outcome: Outcome;
}

/** A read that came before a call, with the labels of what it returned. */
export interface LabelledRead {
  tool: string;
  labels: string[];
  at: number;
  run: string;
}

export interface Approval {
  id: string;
  digest: string;
  tool: string;
  args: { [name: string]: Json };
  agent: string;
  run: string;
  line: number | null;
  reason: string;
  rule: string | null;
  reads: LabelledRead[];
  advice: string[];
  asked: number;
  expires: number;
  shape: string;
  is_unknown: boolean;
  state: string;
  problem: string | null;
  /** Whether a host runs that goes on with its run after the answer; otherwise somebody has to resume it. */
  held: boolean;
  answer: { approved: boolean; approver: string; reason: string } | null;
}

export interface StandingApproval {
  id: string;
  tool: string;
  agent: string;
  shape: string;
  approver: string;
  given: number;
}

/** A tool in a list. */
export interface ToolRow {
  path: string;
  address: string;
  description: string;
  source: string;
  writes: boolean;
  suspended: string | null;
}

export type Schema = { [name: string]: Json };

export interface ToolDetails {
  tool: ToolRow;
  typescript: string;
  python: string;
  schema: Schema;
}

export interface Namespace {
  name: string;
  path: string;
  tools: number;
  is_tool: boolean;
}

export interface FoundTool {
  path: string;
  description: string;
  writes: boolean;
}

/** The decision on a call that nobody makes, and the rules that led there. */
export interface Explanation {
  decision: { verdict: "allow" | "ask" | "deny"; reason: string; rule: string };
  preset: string;
  matches: { verdict: string; pattern: string; agent: string; when: string | null; place: string; wins: boolean; why: string }[];
  labels: string[];
  hidden: boolean;
  change: string;
}

export interface SourceChange {
  source: string;
  digest: string;
  tools: { tool: string; diff: string[] }[];
}

export interface CredentialRow {
  slot: string;
  kind: string;
  state: "ready" | "missing" | "expired" | "sign-in-needed" | "external";
  from: string;
  issuer: string | null;
  days: number | null;
  account: boolean;
  command: string;
  variable: string | null;
}

/** A source. What agents don't see of it is missing for them. */
export interface SourceRow {
  name: string;
  state: "open" | "opening" | "broken" | "untrusted";
  tools: number;
  writes: number;
  problem: string | null;
  kind?: string;
  location?: string;
  file?: string | null;
  suspended?: number;
  hint?: string | null;
  warnings?: string[];
  credentials?: CredentialRow[];
  account?: boolean;
}

/** A change of a settings file: shown, or made. */
export interface SettingsChange {
  file: string;
  diff: string[];
  digest: string;
  made: boolean;
  live: boolean;
}

export interface SourceAddition extends SettingsChange {
  source: {
    name: string;
    kind: string;
    title: string;
    tools?: number;
    reads?: number;
    writes?: number;
    writes_open?: boolean;
    read_only?: string[];
    credentials: { slot: string; kind: string; variable: string; hint: string }[];
    warnings: string[];
    examples: string[];
  };
  opened: boolean;
  does: string;
  argv: string[] | null;
  sign_in: string | null;
}

export interface SignInState {
  state: "none" | "found" | "waiting" | "done" | "failed";
  question: string | null;
  digest: string | null;
  issuer: string | null;
  url: string | null;
  problem: string | null;
  hint: string | null;
  command: string;
}

export interface ClientForm {
  snippet: string | null;
  problem: string | null;
  hint: string | null;
}

export interface ClientRow {
  client: string;
  title: string;
  reload: string;
  format: "json" | "toml";
  files: { user: string; project: string };
  http: ClientForm;
  stdio: ClientForm;
  command: string;
}
