// An agent on Cloudflare's runtime with `@cloudflare/codemode` and the tools of `tests/durable/host.py`.

import { CodemodeConnector, createCodemodeRuntime, DynamicWorkerExecutor } from "@cloudflare/codemode";
import { DurableObject } from "cloudflare:workers";

export { CodemodeRuntime } from "@cloudflare/codemode";

const inputSchema = { type: "object", properties: { n: { type: "number" } } };

class Bank extends CodemodeConnector {
  name() {
    return "tools";
  }

  tools() {
    const pay = async ({ n }, hang) => {
      const body = JSON.stringify({ n, hang });
      await fetch(`${this.env.EFFECTS}/pay`, { method: "POST", body });
      return `paid ${n}`;
    };
    const look = async ({ n }) => {
      await new Promise((done) => setTimeout(done, n % 4));
      return n * 2;
    };
    return {
      look: { description: "Look something up.", inputSchema, execute: look },
      pay: { description: "Pay.", inputSchema, requiresApproval: true, execute: (args) => pay(args, false) },
      slow_pay: { description: "Pay, and never return.", inputSchema, execute: (args) => pay(args, true) },
    };
  }
}

export class Agent extends DurableObject {
  async fetch(request) {
    const { method, given } = await request.json();
    const executor = new DynamicWorkerExecutor({ loader: this.env.LOADER });
    const connectors = [new Bank(this.ctx, this.env)];
    const runtime = createCodemodeRuntime({ ctx: this.ctx, executor, connectors });
    return Response.json((await runtime[method](given)) ?? null);
  }
}

export default {
  fetch: (request, env) => env.AGENT.get(env.AGENT.idFromName("agent")).fetch(request),
};
