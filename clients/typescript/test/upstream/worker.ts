/** Runs the programs in Cloudflare's runtime, with the executor of `@cloudflare/codemode` itself. */

import { DynamicWorkerExecutor } from "@cloudflare/codemode";
import { PROGRAMS, providers, TIMEOUT_MS } from "./programs.ts";

type Loader = ConstructorParameters<typeof DynamicWorkerExecutor>[0]["loader"];

export default {
  /** Returns what became of each program, in JSON. */
  async fetch(_request: Request, env: { LOADER: Loader }): Promise<Response> {
    const executor = new DynamicWorkerExecutor({ loader: env.LOADER, timeout: TIMEOUT_MS });
    const found: Record<string, unknown> = {};
    for (const [name, code] of Object.entries(PROGRAMS)) {
      found[name] = await executor.execute(code, providers()).catch((error: Error) => ({ throws: error.message }));
    }
    return Response.json(found);
  },
};
