// `npm run build` writes the pages into the Python package. `npm run dev` serves them while they are worked on: it passes
// requests for the API on to GLOVEPORT_URL, with the token in GLOVEPORT_TOKEN.
import { defineConfig } from "vite";

declare const process: { env: Record<string, string | undefined> };
const { GLOVEPORT_URL = "http://127.0.0.1:8484", GLOVEPORT_TOKEN } = process.env;

export default defineConfig({
  base: "/",
  build: {
    outDir: process.env["GLOVEPORT_STATIC"] ?? "../src/gloveport/surfaces/web/static",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0, // the content security policy forbids data: URLs
    chunkSizeWarningLimit: 600,
    rolldownOptions: { checks: { bundlerTimings: false } }, // on a busy machine they fill a newcomer's first screen
  },
  server: {
    proxy: {
      "/v1": {
        target: GLOVEPORT_URL,
        headers: GLOVEPORT_TOKEN ? { Authorization: `Bearer ${GLOVEPORT_TOKEN}`, Origin: GLOVEPORT_URL } : {},
      },
    },
  },
});
