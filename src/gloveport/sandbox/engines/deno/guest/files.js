// The global `files` of a run with a session: the files below its workspace. The jail confines it, not this module.

import { fileSystem } from "./engine.js";
import { define, workspace } from "./globals.js";
import {
  deleteProperty,
  Error_,
  freeze,
  promiseReject,
  promiseResolve,
  stringLastIndexOf,
  stringSlice,
  TypeError_,
} from "./primordials.js";

const PLATFORM = freeze({ __proto__: null, build: freeze({ __proto__: null, os: "linux" }) });

function attempt(work) {
  try {
    return promiseResolve(work());
  } catch (error) {
    return promiseReject(explained(error));
  }
}

function explained(error) {
  if (error?.name !== "NotCapable") return error;
  const outside = new Error_(`only files below ${workspace.path} can be read and written`);
  outside.name = "PermissionDenied";
  return outside;
}

function named(path) {
  if (typeof path !== "string" || path === "") {
    throw new TypeError_("the path of a file is text such as `data/rows.json`");
  }
  return path;
}

function makeFolder(path) {
  const end = stringLastIndexOf(named(path), "/");
  if (end > 0) fileSystem.mkdirSync(stringSlice(path, 0, end), { __proto__: null, recursive: true });
}

function put(path, content, append) {
  makeFolder(path);
  const options = { __proto__: null, append };
  if (typeof content === "string") return fileSystem.writeTextFileSync(path, content, options);
  if (!(content instanceof Uint8Array)) throw new TypeError_("a file's content is text or a Uint8Array");
  fileSystem.writeFileSync(path, content, options);
}

// Deno's `statSync` asks the global `Deno` for the platform. No code of the program runs meanwhile.
/** Returns what is known about a file or a folder. */
export function statOf(path) {
  define("Deno", PLATFORM);
  try {
    return fileSystem.statSync(path);
  } finally {
    deleteProperty(globalThis, "Deno");
  }
}

function list(folder) {
  const found = [];
  for (const { name, isDirectory } of fileSystem.readDirSync(named(folder))) {
    const path = folder === "." ? name : `${folder}/${name}`;
    found[found.length] = isDirectory ? { path, folder: true } : { path, folder: false, size: statOf(path).size };
  }
  return found.sort((one, other) => one.path < other.path ? -1 : 1);
}

function exists(path) {
  try {
    statOf(named(path));
    return true;
  } catch (error) {
    if (error?.name === "NotFound") return false;
    throw error;
  }
}

/** Defines `files`. */
export function installFiles() {
  define(
    "files",
    freeze({
      read: (path) => attempt(() => fileSystem.readTextFileSync(named(path))),
      readBytes: (path) => attempt(() => fileSystem.readFileSync(named(path))),
      write: (path, content) => attempt(() => put(path, content, false)),
      append: (path, content) => attempt(() => put(path, content, true)),
      list: (folder = ".") => attempt(() => list(folder)),
      exists: (path) => attempt(() => exists(path)),
      move: (from, to) =>
        attempt(() => {
          makeFolder(to);
          fileSystem.renameSync(named(from), to);
        }),
      remove: (path) => attempt(() => fileSystem.removeSync(named(path), { __proto__: null, recursive: true })),
    }),
  );
}
