// Commands that do over the API what was done here. The token is a variable of the shell, never a value.
import type { Call, Json } from "../types";

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** The command that runs a program. */
export function curlOfProgram(code: string, language: string, origin: string): string {
  const body: Json = { code, language };
  return [
    `curl -s ${quoted(`${origin}/v1/runs`)}`,
    `  -H "Authorization: Bearer $GLOVEPORT_TOKEN"`,
    `  -H 'Content-Type: application/json'`,
    `  -d ${quoted(JSON.stringify(body))}`,
  ].join(" \\\n");
}

/** The command that makes one call, as a program of one line: rules and approvals hold as they did. */
export function curlOfCall(call: Call, origin: string): string {
  const path = call.tool.split(".").map((part) => (/^[A-Za-z_$][\w$]*$/.test(part) ? `.${part}` : `[${JSON.stringify(part)}]`));
  return curlOfProgram(`await tools${path.join("")}(${JSON.stringify(call.args)})`, "typescript", origin);
}
