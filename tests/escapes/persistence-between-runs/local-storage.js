// Tries: localStorage and sessionStorage.
// Origin: S16; design.md §3: localStorage goes.

const found = [];
for (const name of ["localStorage", "sessionStorage"]) {
  try {
    if (input.round === 1) globalThis[name].setItem("planted", input.plant);
    else found.push(globalThis[name].getItem("planted"));
  } catch (error) {
    found.push(String(error));
  }
}
return input.round === 2 ? found : null;
