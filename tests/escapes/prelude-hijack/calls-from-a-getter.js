// Tries: a getter in a call's arguments that makes another call while the first is being written, so that their ids
// cross.
// Origin: own idea: re-entrancy by getters.

const given = {
  get a() {
    tools.add(5, 6).catch(() => {});
    return 1;
  },
  toJSON() {
    tools.add(7, 8).catch(() => {});
    return { a: 1, b: 2 };
  },
  b: 2,
};
const original = Array.from;
Array.from = (args) => {
  Array.from = original;
  tools.add(9, 10).catch(() => {});
  return original(args);
};
return await tools.add(given).catch(String);
