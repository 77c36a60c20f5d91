// Tries: a named channel on which one run waits for the question of the next.
// Origin: S16; BroadcastChannel reaches every context of an origin, and some engines' other processes.

const channel = new BroadcastChannel("planted");
if (input.round === 1) {
  channel.onmessage = () => channel.postMessage(input.plant);
  return null;
}
const answer = new Promise((resolve) => channel.onmessage = (event) => resolve(event.data));
channel.postMessage("?");
return await Promise.race([answer, new Promise((resolve) => setTimeout(resolve, 500))]);
