// Who may use the server, as /v1/agents has it: holders of tokens, and agents of the settings.
import type { Role } from "../types";

export interface Holder {
  name: string;
  role: Role;
  /** When its token was made, in seconds since 1970; null if it has none of its own. */
  created: number | null;
  /** Whether the settings have this agent; an agent that they don't have is refused. */
  configured: boolean;
  tools: string[];
  limits: { [name: string]: number };
}

export const ROLES: [Role, string][] = [
  ["agent", "runs programs, and sees its own runs, tools and snippets"],
  ["host", "does what an agent does, and brings tools of its own to a run"],
  ["approver", "answers what is asked about calls; sees all runs and the record"],
  ["admin", "may do all of this, for any agent; changes rules, sources and tokens"],
  ["monitor", "reads the metrics, and nothing else"],
];

export const isAgent = ({ role }: Holder) => role === "agent" || role === "host";
/** The agent that the server's own token belongs to. */
export const isServers = ({ name, role }: Holder) => name === "default" && role === "agent";
export const isRefused = (holder: Holder) => isAgent(holder) && !holder.configured;
export const keyOf = ({ name, role }: Holder) => `${role} ${name}`;
export const hrefOf = ({ name, role }: Holder) => `/agents?name=${encodeURIComponent(name)}${role === "agent" ? "" : `&role=${role}`}`;
