// How to use a token, ready to paste. The token itself is a variable of the environment: no file has to hold it.
import { useState } from "react";
import { Copy } from "../shell/copy";
import type { Role } from "../types";

interface Recipe {
  title: string;
  note: string;
  text: string;
}

const VARIABLE = "GLOVEPORT_TOKEN";

function recipesOf(role: Role, origin: string): Recipe[] {
  const curl = (path: string) => `curl -s ${origin}${path} \\\n  -H "Authorization: Bearer $${VARIABLE}"`;
  const run = `${curl("/v1/runs")} \\\n  -H 'Content-Type: application/json' -d '{"code": "1 + 1"}'`;
  if (role === "agent") {
    const server = { type: "http", url: `${origin}/mcp`, headers: { Authorization: `Bearer \${${VARIABLE}:-}` } };
    const codex = `[mcp_servers.gloveport]\nurl = "${origin}/mcp"\nbearer_token_env_var = "${VARIABLE}"`;
    return [
      { title: "Claude Code", note: "In .mcp.json of the project:", text: JSON.stringify({ mcpServers: { gloveport: server } }, null, 2) },
      { title: "Codex", note: "In ~/.codex/config.toml:", text: codex },
      { title: "Other clients", note: "On the client's machine, for any client that Gloveport knows:", text: `gloveport connect claude-code --url ${origin}/mcp` },
      { title: "HTTP", note: "Without MCP:", text: run },
    ];
  }
  if (role === "host") return [{ title: "HTTP", note: "Programs in any language; tools of its own come over the WebSocket /v1/host:", text: run }];
  if (role === "monitor") {
    const scrape = `scrape_configs:\n  - job_name: gloveport\n    authorization: { credentials_file: /etc/prometheus/gloveport.token }\n    static_configs: [{ targets: ["${origin.replace(/^https?:\/\//, "")}"] }]`;
    return [{ title: "Prometheus", note: "In prometheus.yml, with the token in its own file:", text: scrape }];
  }
  return [{ title: "HTTP", note: "What waits for a person:", text: curl("/v1/approvals") }];
}

export function UseToken({ role }: { role: Role }) {
  const recipes = recipesOf(role, location.origin);
  const [chosen, setChosen] = useState(0);
  const recipe = recipes[chosen] ?? recipes[0];
  if (!recipe) return null;
  return (
    <div className="use-token">
      {recipes.length > 1 && (
        <div className="choices" role="group" aria-label="Client">
          {recipes.map((one, at) => <button key={one.title} aria-pressed={at === chosen} onClick={() => setChosen(at)}>{one.title}</button>)}
        </div>
      )}
      <p className="small quiet">{recipe.note}</p>
      <div className="command recipe"><pre tabIndex={0}>{recipe.text}</pre><Copy text={recipe.text} /></div>
    </div>
  );
}
