// Tries: a database file: SQLite opens, attaches and writes files by its own code, beside the platform's permissions.
// Origin: SQLite's ATTACH and VACUUM INTO as file writes.

const { DatabaseSync } = process.getBuiltinModule("sqlite");
const database = new DatabaseSync(":memory:");
database.exec("CREATE TABLE t (x)");
try {
  database.exec(`VACUUM INTO '${input.write}'`);
} catch (error) {
  console.log(String(error));
}
database.exec(`ATTACH '${input.directory}/attached' AS a; CREATE TABLE a.t (x)`);
return 1;
