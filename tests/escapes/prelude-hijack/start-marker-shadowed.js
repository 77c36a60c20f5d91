// Tries: a declaration of the name that the prelude puts before the program, so that ours is called in its place.
// Origin: own idea: hoisted declarations of a module come before its first statement.

export default async () => {
  const text = '["canary"]';
  console.log(String.fromCharCode(0, 0, 0, text.length) + text);
  return typeof $$begin;
};

function $$begin() {}
