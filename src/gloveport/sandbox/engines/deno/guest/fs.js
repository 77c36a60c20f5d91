// Node's modules `fs` and `fs/promises` for runs with a session: the usual functions, over the same calls as `files`.
// The jail confines them, not this module. All files have one time, so that a replay sees what the run saw.

import { nodeBuffer } from "./builtins.js";
import { decodeText, fileSystem } from "./engine.js";
import { statOf } from "./files.js";
import { workspace } from "./globals.js";
import { defineModule } from "./modules.js";
import { Error_, freeze, keys, promiseReject, promiseResolve, promiseThen, TypeError_ } from "./primordials.js";

const KEPT_MS = 1e12;
const CODES = freeze({
  __proto__: null,
  AlreadyExists: "EEXIST",
  IsADirectory: "EISDIR",
  NotADirectory: "ENOTDIR",
  NotCapable: "EACCES",
  NotFound: "ENOENT",
  PermissionDenied: "EACCES",
});
const RECURSIVE = freeze({ __proto__: null, recursive: true });

function failed(error, call, path) {
  if (error instanceof TypeError_) return error;
  const code = error?.code ?? CODES[error?.name] ?? "EIO";
  const shown = new Error_(`${code}: ${error?.message}, ${call} '${path}'`);
  return Object.assign(shown, { code, syscall: call, path });
}

function named(path) {
  if (path instanceof URL && path.protocol === "file:") return decodeURIComponent(path.pathname);
  if (typeof path !== "string" || path === "") {
    throw new TypeError_("the path of a file is text such as `data/rows.json`");
  }
  return path;
}

function attempt(call, path, work) {
  const name = named(path);
  try {
    return work(name);
  } catch (error) {
    throw failed(error, call, name);
  }
}

const encodingOf = (options) => typeof options === "string" ? options : options?.encoding ?? null;
const isUtf8 = (encoding) => encoding === "utf8" || encoding === "utf-8";

function bytesOf(data, encoding) {
  if (typeof data === "string") {
    return encoding === null || isUtf8(encoding) ? new TextEncoder().encode(data) : nodeBuffer().from(data, encoding);
  }
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  throw new TypeError_("the content of a file is text or bytes");
}

function readFile(path, options) {
  const bytes = attempt("open", path, fileSystem.readFileSync), encoding = encodingOf(options);
  if (isUtf8(encoding)) return decodeText(bytes);
  const buffer = nodeBuffer().from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return encoding === null || encoding === "buffer" ? buffer : buffer.toString(encoding);
}

function write(path, data, options, flag) {
  const bytes = bytesOf(data, encodingOf(options));
  const how = { __proto__: null, append: flag[0] === "a", createNew: flag[1] === "x" };
  attempt("open", path, (name) => fileSystem.writeFileSync(name, bytes, how));
}

class Stats {
  constructor(found) {
    this.size = found.size;
    this.mode = found.isDirectory ? 0o40755 : 0o100644;
    this.nlink = 1;
    for (const name of ["atime", "mtime", "ctime", "birthtime"]) {
      this[`${name}Ms`] = KEPT_MS;
      this[name] = new Date(KEPT_MS);
    }
    Object.defineProperty(this, "folder", { value: found.isDirectory });
  }
  isFile() {
    return !this.folder;
  }
  isDirectory() {
    return this.folder;
  }
  isSymbolicLink() {
    return false;
  }
}

class Dirent {
  constructor(name, parentPath, folder) {
    this.name = name;
    this.parentPath = this.path = parentPath;
    Object.defineProperty(this, "folder", { value: folder });
  }
  isFile() {
    return !this.folder;
  }
  isDirectory() {
    return this.folder;
  }
  isSymbolicLink() {
    return false;
  }
}

function stat(path, options) {
  try {
    return new Stats(attempt("stat", path, statOf));
  } catch (error) {
    if (options?.throwIfNoEntry === false && error?.code === "ENOENT") return undefined;
    throw error;
  }
}

function exists(path) {
  try {
    stat(path);
    return true;
  } catch {
    return false;
  }
}

function walk(folder, below, recursive, found) {
  const entries = [...attempt("scandir", folder, fileSystem.readDirSync)];
  entries.sort((one, other) => one.name < other.name ? -1 : 1);
  for (const { name, isDirectory } of entries) {
    found.push({ name, at: folder, path: below + name, folder: isDirectory });
    if (isDirectory && recursive) walk(`${folder}/${name}`, `${below}${name}/`, true, found);
  }
  return found;
}

function readdir(path, options) {
  const found = walk(named(path), "", options?.recursive === true, []);
  return found.map((one) => options?.withFileTypes ? new Dirent(one.name, one.at, one.folder) : one.path);
}

function mkdir(path, options) {
  attempt("mkdir", path, (name) => fileSystem.mkdirSync(name, options?.recursive === true ? RECURSIVE : undefined));
}

function rm(path, options) {
  if (options?.force === true && !exists(path)) return;
  if (stat(path).isDirectory() && options?.recursive !== true) {
    throw failed({ code: "ERR_FS_EISDIR", message: "it is a folder: pass {recursive: true}" }, "rm", path);
  }
  attempt("rm", path, (name) => fileSystem.removeSync(name, RECURSIVE));
}

function unlink(path) {
  if (stat(path).isDirectory()) {
    throw failed({ code: "EISDIR", message: "illegal operation on a directory" }, "unlink", path);
  }
  attempt("unlink", path, (name) => fileSystem.removeSync(name));
}

function rmdir(path, options) {
  if (!stat(path).isDirectory()) throw failed({ code: "ENOTDIR", message: "not a directory" }, "rmdir", path);
  attempt("rmdir", path, (name) => fileSystem.removeSync(name, options?.recursive === true ? RECURSIVE : undefined));
}

function copyFile(from, to, mode = 0) {
  const bytes = attempt("copyfile", from, fileSystem.readFileSync);
  write(to, bytes, undefined, mode & 1 ? "wx" : "w");
}

function cp(from, to, options) {
  if (!stat(from).isDirectory()) return copyFile(from, to);
  if (options?.recursive !== true) {
    throw failed({ code: "ERR_FS_EISDIR", message: "it is a folder: pass {recursive: true}" }, "cp", from);
  }
  mkdir(to, RECURSIVE);
  for (const name of readdir(from)) cp(`${named(from)}/${name}`, `${named(to)}/${name}`, options);
}

function mkdtemp(prefix) {
  const letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  let path = named(prefix);
  for (let count = 0; count < 6; count++) path += letters[Math.floor(Math.random() * letters.length)];
  mkdir(path);
  return path;
}

const FUNCTIONS = freeze({
  __proto__: null,
  access: (path) => void stat(path),
  appendFile: (path, data, options) => write(path, data, options, options?.flag ?? "a"),
  copyFile,
  cp,
  lstat: stat,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  realpath: (path) => (stat(path), new URL(named(path), `file://${workspace.path}/`).pathname),
  rename: (from, to) => attempt("rename", from, (name) => fileSystem.renameSync(name, named(to))),
  rm,
  rmdir,
  stat,
  unlink,
  writeFile: (path, data, options) => write(path, data, options, options?.flag ?? "w"),
});
const CONSTANTS = freeze({ F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1, COPYFILE_EXCL: 1 });

function promised(work) {
  return (...args) => {
    try {
      return promiseResolve(work(...args));
    } catch (error) {
      return promiseReject(error);
    }
  };
}

// Node's oldest form: the last argument is called with an error, or with null and the result.
function calledBack(work) {
  return (...args) => {
    const back = args.pop();
    if (typeof back !== "function") throw new TypeError_("the last argument is a function: or use the form with Sync");
    promiseThen(promised(work)(...args), (found) => back(null, found), (error) => back(error));
  };
}

function makePromises() {
  const found = { constants: CONSTANTS };
  for (const name of keys(FUNCTIONS)) found[name] = promised(FUNCTIONS[name]);
  return found;
}

function make() {
  const found = { Dirent, Stats, constants: CONSTANTS, existsSync: exists, promises: makePromises() };
  for (const name of keys(FUNCTIONS)) {
    found[name] = calledBack(FUNCTIONS[name]);
    found[`${name}Sync`] = FUNCTIONS[name];
  }
  return found;
}

/** Lets programs import `fs` and `fs/promises`. */
export function defineFileModules() {
  defineModule("fs", make);
  defineModule("fs/promises", makePromises);
}
