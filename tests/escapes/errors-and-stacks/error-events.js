// Tries: listeners on the global object for errors and rejections: an event's target, path and symbols lead out.
// Origin: Deno's Window is an EventTarget whose methods outlive the deletion of the globals; own idea.

const found = [];
function dig(value, depth = 0) {
  if (value === null || !["object", "function"].includes(typeof value) || depth > 4) return;
  try {
    const platform = value.Deno ?? value.constructor.constructor("return Deno")();
    found.push(platform.args, platform.readTextFileSync(input.file));
  } catch { /* on */ }
  for (const name of Reflect.ownKeys(value)) {
    try {
      const own = Object.getOwnPropertyDescriptor(value, name);
      if (typeof own.value === "string") found.push(own.value);
      dig(own.value, depth + 1);
    } catch { /* on */ }
  }
}

const caught = [];
for (const name of ["error", "unhandledrejection", "rejectionhandled", "load", "beforeunload", "unload"]) {
  EventTarget.prototype.addEventListener.call(globalThis, name, (event) => {
    caught.push(event, event.target, event.currentTarget, event.error, event.reason, ...event.composedPath());
    event.preventDefault();
  });
}
EventTarget.prototype.dispatchEvent.call(globalThis, new ErrorEvent("error", { error: new Error("mine"), cancelable: true }));
Promise.reject(new Error("lost"));
await new Promise((resolve) => setTimeout(resolve, 5));
for (const item of caught) dig(item);
return found;
