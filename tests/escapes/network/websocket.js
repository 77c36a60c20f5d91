// Tries: a WebSocket to the host.
// Origin: own idea: every API that dials.

const found = await new Promise((resolve) => {
  const socket = new WebSocket(`ws://127.0.0.1:${input.tcp}/`);
  socket.onopen = socket.onerror = (event) => resolve(event.type);
  setTimeout(resolve, 1000);
});
return found;
