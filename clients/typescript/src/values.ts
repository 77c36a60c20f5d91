/**
 * The value codec: plain JSON stays as it is, and what JSON lacks is tagged, `{"$": kind, "v": …}`. Keys that start with `$`
 * get one more. It is the codec of the sandbox's border, so a `Uint8Array` or a `Date` arrives as one.
 */

/** A value as JSON data, tags included. */
export type Wire = null | boolean | number | string | Wire[] | { [key: string]: Wire };

/** Returns the JSON form of a value; throws a TypeError for one that contains itself. */
export function encode(value: unknown, above: readonly object[] = []): Wire {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0)
        ? value
        : tag("number", Object.is(value, -0) ? "-0" : `${value}`);
    case "bigint":
      return tag("bigint", `${value}`);
    case "object":
      return value === null ? null : encodeObject(value, above);
    default: // undefined, and what is no data: functions and symbols
      return tag("undefined", null);
  }
}

function tag(kind: string, content: Wire): Wire {
  return { $: kind, v: content };
}

function encodeObject(value: object, above: readonly object[]): Wire {
  if (above.includes(value)) throw new TypeError("a value contains itself, so it can't be sent");
  const path = [...above, value];
  const items = (all: Iterable<unknown>) => Array.from(all, (item) => encode(item, path));
  if (Array.isArray(value)) return items(value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : tag("date", value.getTime());
  if (value instanceof ArrayBuffer) return tag("bytes", Buffer.from(value).toString("base64"));
  if (ArrayBuffer.isView(value)) {
    return tag("bytes", Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64"));
  }
  if (value instanceof Set) return tag("set", items(value));
  if (value instanceof Map) return tag("map", items(Array.from(value)));
  if (value instanceof Error) return tag("error", { name: value.name, message: value.message });
  if ("toJSON" in value && typeof value.toJSON === "function") return encode(value.toJSON(), path);
  const entries = Object.entries(value).filter(([, item]) => isData(item));
  return Object.fromEntries(entries.map(([key, item]) => [key.startsWith("$") ? `$${key}` : key, encode(item, path)]));
}

function isData(item: unknown): boolean {
  return item !== undefined && typeof item !== "function" && typeof item !== "symbol";
}

/** Returns the value for its JSON form. */
export function decode(wire: Wire): unknown {
  if (wire === null || typeof wire !== "object") return wire;
  if (Array.isArray(wire)) return wire.map(decode);
  if (typeof wire.$ === "string") return untag(wire.$, wire.v ?? null);
  return Object.fromEntries(
    Object.entries(wire).map(([key, item]) => [key.startsWith("$") ? key.slice(1) : key, decode(item)]),
  );
}

function untag(kind: string, content: Wire): unknown {
  switch (kind) {
    case "undefined":
      return undefined;
    case "number":
      return Number(content);
    case "bigint":
      return BigInt(String(content));
    case "date":
      return new Date(Number(content));
    case "bytes":
      return new Uint8Array(Buffer.from(String(content), "base64"));
    case "set":
      return new Set(decode(content) as unknown[]);
    case "map":
      return new Map(decode(content) as [unknown, unknown][]);
    case "error":
      return decodeError(content as { [key: string]: Wire });
    default:
      throw new TypeError(`a value has an unknown tag: ${kind.slice(0, 40)}`);
  }
}

function decodeError({ name, message, cause, data }: { [key: string]: Wire }): Error {
  const error = new Error(String(message), cause === undefined ? {} : { cause: decode(cause) });
  error.name = String(name);
  return Object.assign(error, data === undefined ? {} : decode(data));
}
