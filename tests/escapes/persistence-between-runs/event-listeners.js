// Tries: listeners that one run leaves with the global object and the process, called in the next.
// Origin: S16; event targets outlive who registered with them.

const asked = [];
const listen = (event) => event.detail.push(input.plant);
for (const target of [() => globalThis, () => process]) {
  try {
    const place = target();
    if (input.round === 1) (place.addEventListener ?? place.on).call(place, "planted", listen);
    else if (place.dispatchEvent) place.dispatchEvent(new CustomEvent("planted", { detail: asked }));
    else place.emit("planted", { detail: asked });
  } catch (error) {
    asked.push(String(error));
  }
}
return input.round === 2 ? asked : null;
