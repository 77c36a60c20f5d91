/** Schemas of the AI SDK's tools (Zod and other Standard Schemas, `jsonSchema()`, plain JSON Schema) as JSON Schema and as types. */

/** A JSON Schema, as far as it is read here. */
export interface JsonSchema {
  type?: string | string[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema | JsonSchema[];
  prefixItems?: JsonSchema[];
  additionalProperties?: boolean | JsonSchema;
  enum?: unknown[];
  const?: unknown;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
  description?: string;
  $ref?: string;
}

interface Validated {
  value: unknown;
  problem?: string;
}

interface StandardSchema {
  "~standard": {
    validate(value: unknown): StandardResult | Promise<StandardResult>;
    jsonSchema?: Record<"input" | "output", (options: { target: string }) => JsonSchema>;
  };
}

interface StandardResult {
  value?: unknown;
  issues?: readonly { message: string; path?: readonly (PropertyKey | { key: PropertyKey })[] }[];
}

interface SdkSchema {
  jsonSchema: JsonSchema | PromiseLike<JsonSchema>;
  validate?: (value: unknown) => SdkResult | PromiseLike<SdkResult>;
}

type SdkResult = { success: true; value: unknown } | { success: false; error: Error };

/** Returns the JSON Schema of a schema, as far as it can be known at once. */
export function jsonSchemaOf(schema: unknown, side: "input" | "output" = "input"): JsonSchema | undefined {
  const known = resolve(schema);
  if (known === undefined) return undefined;
  if (isStandard(known)) return convert(known, side);
  if (!isSdk(known)) return known as JsonSchema;
  const found = known.jsonSchema;
  return "then" in found ? undefined : found;
}

function convert(schema: StandardSchema, side: "input" | "output"): JsonSchema | undefined {
  try {
    return schema["~standard"].jsonSchema?.[side]({ target: "draft-07" });
  } catch {
    return undefined; // a part that JSON Schema can't express: `validate` still checks it
  }
}

/** Returns a value as its schema makes it, with defaults and transforms; `problem` says why it does not fit. */
export async function validate(schema: unknown, value: unknown): Promise<Validated> {
  const known = resolve(schema);
  if (isStandard(known)) {
    const { issues, value: made } = await known["~standard"].validate(value);
    if (issues === undefined) return { value: made };
    return { value, problem: issues.map(({ path, message }) => `${pathText(path)}${message}`).join("; ") };
  }
  if (!isSdk(known) || known.validate === undefined) return { value };
  const found = await known.validate(value);
  return found.success ? { value: found.value } : { value, problem: found.error.message };
}

/** Returns a schema, or what a function that makes one later returns. */
function resolve(schema: unknown): object | undefined {
  const made: unknown = typeof schema === "function" && !("~standard" in schema) ? schema() : schema;
  return (typeof made === "object" || typeof made === "function") && made !== null ? made : undefined;
}

function isStandard(schema: object | undefined): schema is StandardSchema {
  return schema !== undefined && "~standard" in schema;
}

function isSdk(schema: object | undefined): schema is SdkSchema {
  return schema !== undefined && "jsonSchema" in schema;
}

function pathText(path: readonly (PropertyKey | { key: PropertyKey })[] = []): string {
  const keys = path.map((step) => String(typeof step === "object" ? step.key : step));
  return keys.length > 0 ? `${keys.join(".")}: ` : "";
}

const MAX_DEPTH = 12;
const TYPE_NAMES: Record<string, string> = { integer: "number", null: "null" };

/** Returns the TypeScript type for a JSON Schema, for a model to read; `unknown` for what it can't express. */
export function typeText(schema: JsonSchema | boolean | undefined, depth = 0): string {
  if (typeof schema !== "object" || depth > MAX_DEPTH) return "unknown";
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return union(schema.enum.map((each) => JSON.stringify(each)));
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return union(choices.map((each) => typeText(each, depth + 1)));
  if (schema.allOf) return schema.allOf.map((each) => typeText(each, depth + 1)).join(" & ");
  if (Array.isArray(schema.type)) return union(schema.type.map((type) => typeText({ ...schema, type }, depth)));
  if (schema.type === "object" || schema.properties) return objectText(schema, depth);
  if (schema.type === "array") return arrayText(schema, depth);
  return schema.type === undefined ? "unknown" : TYPE_NAMES[schema.type] ?? schema.type;
}

function union(types: string[]): string {
  return [...new Set(types)].join(" | ") || "never";
}

function arrayText({ items, prefixItems }: JsonSchema, depth: number): string {
  const places = prefixItems ?? (Array.isArray(items) ? items : undefined);
  if (places) return `[${places.map((each) => typeText(each, depth + 1)).join(", ")}]`;
  return `Array<${typeText(items as JsonSchema | undefined, depth + 1)}>`;
}

function objectText({ properties = {}, required = [], additionalProperties }: JsonSchema, depth: number): string {
  const fields = Object.entries(properties).map(([name, schema]) => {
    const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
    const note = schema.description ? ` ${comment(schema.description)}` : "";
    return `${key}${required.includes(name) ? "" : "?"}: ${typeText(schema, depth + 1)};${note}`;
  });
  if (typeof additionalProperties === "object") {
    fields.push(`[key: string]: ${typeText(additionalProperties, depth + 1)};`);
  }
  return fields.length > 0 ? `{ ${fields.join(" ")} }` : "Record<string, unknown>";
}

/** Returns a comment that its text can't end. */
export function comment(text: string): string {
  return `/** ${text.replaceAll("*/", "*\\/").replace(/\s+/g, " ").trim()} */`;
}
