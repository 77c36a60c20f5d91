// Tries: a database in memory that every connection of its name shares.
// Origin: S16; SQLite's shared cache.

const { DatabaseSync } = await import("node:sqlite");
const database = new DatabaseSync("file:planted?mode=memory&cache=shared");
globalThis.kept = [...(globalThis.kept ?? []), database];
if (input.round === 1) {
  database.exec("create table planted (word)");
  database.prepare("insert into planted values (?)").run(input.plant);
  return null;
}
return database.prepare("select word from planted").all();
