// Fields for the arguments of a tool, made from its JSON schema. What no field fits is written as JSON. The server checks all.
import { useId, useState } from "react";
import { Visible, visibleText } from "../shell/visible";
import type { Json, Schema } from "../types";

export type Values = { [name: string]: Json };

const MAX_FIELDS = 60;
const MAX_DEPTH = 3;
const FEW_FIELDS = 6;
const isRecord = (value: unknown): value is Schema => value !== null && typeof value === "object" && !Array.isArray(value);

/** What a form begins with: the fields that have to be there and can have one value only. */
export function initialValue(schema: Schema): Values {
  const found: Values = {};
  for (const [name, each] of Object.entries(propertiesOf(schema))) if (isRecord(each) && "const" in each) found[name] = each["const"] ?? null;
  return found;
}

interface FieldsProps {
  schema: Schema;
  values: Values;
  onChange: (values: Values) => void;
  root?: Schema;
  depth?: number;
}

export function Fields({ schema, values, onChange, root = schema, depth = 0 }: FieldsProps) {
  const properties = Object.entries(propertiesOf(schema)).slice(0, MAX_FIELDS);
  const required = new Set(Array.isArray(schema["required"]) ? schema["required"] : []);
  const first = properties.filter(([name]) => required.has(name) || name in values);
  const rest = properties.filter(([name]) => !required.has(name) && !(name in values));
  const hidden = Object.keys(propertiesOf(schema)).length - properties.length;
  const [more, setMore] = useState(properties.length <= FEW_FIELDS);
  const field = ([name, each]: [string, Json]) => (
    <Field
      key={name}
      name={name}
      schema={resolve(each, root)}
      root={root}
      depth={depth}
      isRequired={required.has(name)}
      value={values[name]}
      onChange={(value) => onChange(value === undefined ? Object.fromEntries(Object.entries(values).filter(([other]) => other !== name)) : { ...values, [name]: value })}
    />
  );
  if (properties.length === 0) return <p className="quiet small">{schema["additionalProperties"] === false || depth === 0 ? "It takes no arguments." : "Write it as JSON."}</p>;
  return (
    <div className="fields">
      {(more ? properties : first).map(field)}
      {!more && rest.length > 0 && <button type="button" className="more" onClick={() => setMore(true)}>{rest.length} optional {rest.length === 1 ? "argument" : "arguments"}</button>}
      {more && hidden > 0 && <p className="quiet small">{hidden} more arguments: write them as JSON.</p>}
    </div>
  );
}

interface FieldProps {
  name: string;
  schema: Schema;
  root: Schema;
  depth: number;
  isRequired: boolean;
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
}

function Field(props: FieldProps) {
  const { name, schema, root, depth, isRequired, value, onChange } = props;
  const id = useId();
  const description = typeof schema["description"] === "string" ? schema["description"] : "";
  const type = typeOf(schema);
  if (type === "object" && depth < MAX_DEPTH && Object.keys(propertiesOf(schema)).length > 0)
    return (
      <fieldset className="field-group">
        <legend><Name name={name} isRequired={isRequired} type={type} /></legend>
        {description && <p className="quiet small"><Visible text={description} limit={300} /></p>}
        <Fields schema={schema} root={root} depth={depth + 1} values={isRecord(value) ? value : {}} onChange={(given) => onChange(Object.keys(given).length ? given : undefined)} />
      </fieldset>
    );
  const items = type === "array" ? itemsOf(schema, root) : null;
  if (items && depth < MAX_DEPTH) return <ListField {...props} items={items} about={description} />;
  return (
    <div className="field">
      <label htmlFor={id}><Name name={name} isRequired={isRequired} type={typeWord(schema, type)} /></label>
      <Input id={id} type={type} schema={schema} value={value} onChange={onChange} isRequired={isRequired} describedBy={description ? `${id}-about` : undefined} />
      {description && <p className="quiet small" id={`${id}-about`}><Visible text={description} limit={300} /></p>}
    </div>
  );
}

/** A list: each item has its own field, or fields. */
function ListField({ name, root, depth, isRequired, value, onChange, items, about }: FieldProps & { items: Schema; about: string }) {
  const given = Array.isArray(value) ? value : [];
  const [keys, setKeys] = useState(() => given.map((_, at) => at)); // an item keeps its field when one before it goes
  const isObject = typeOf(items) === "object";
  const put = (at: number, item: Json | undefined) => onChange(given.map((old, other) => (other === at ? (item ?? (isObject ? {} : "")) : old)));
  const add = () => {
    setKeys([...keys, Math.max(-1, ...keys) + 1]);
    onChange([...given, isObject ? {} : typeOf(items) === "boolean" ? false : ""]);
  };
  const drop = (at: number) => {
    setKeys(keys.filter((_, other) => other !== at));
    const rest = given.filter((_, other) => other !== at);
    onChange(rest.length || isRequired ? rest : undefined);
  };
  return (
    <fieldset className="field-group">
      <legend><Name name={name} isRequired={isRequired} type={typeWord({ type: "array", items }, "array")} /></legend>
      {about && <p className="quiet small"><Visible text={about} limit={300} /></p>}
      {given.map((item, at) => (
        <div key={keys[at] ?? at} className="list-item">
          <div>
            {isObject ? (
              <Fields schema={items} root={root} depth={depth + 1} values={isRecord(item) ? item : {}} onChange={(next) => put(at, next)} />
            ) : (
              <Input id={`${name}-${depth}-${at}`} label={`${name}, item ${at + 1}`} type={typeOf(items)} schema={items} value={item} onChange={(next) => put(at, next)} isRequired describedBy={undefined} />
            )}
          </div>
          <button type="button" className="plain" aria-label={`Remove item ${at + 1} of ${name}`} onClick={() => drop(at)}>×</button>
        </div>
      ))}
      <button type="button" onClick={add}>Add {given.length ? "another" : "one"}</button>
    </fieldset>
  );
}

function Name({ name, isRequired, type }: { name: string; isRequired: boolean; type: string }) {
  return <><code className="field-name"><Visible text={name} limit={100} /></code>{isRequired && <span className="required" title="required"> required</span>} <span className="quiet field-type">{type}</span></>;
}

interface InputProps {
  id: string;
  /** The name of the field, where no label has it. */
  label?: string;
  type: string;
  schema: Schema;
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
  isRequired: boolean;
  describedBy: string | undefined;
}

function Input({ id, label, type, schema, value, onChange, isRequired, describedBy }: InputProps) {
  const about = { id, "aria-label": label, "aria-describedby": describedBy, "aria-required": isRequired || undefined };
  const choices = choicesOf(schema);
  if (choices) {
    const at = choices.findIndex((each) => JSON.stringify(each) === JSON.stringify(value));
    return (
      <select {...about} value={at} onChange={(event) => onChange(choices[Number(event.target.value)])}>
        <option value={-1}>{isRequired ? "choose…" : "not given"}</option>
        {choices.map((each, index) => <option key={index} value={index}>{visibleText(typeof each === "string" ? each : JSON.stringify(each)).slice(0, 200)}</option>)}
      </select>
    );
  }
  if (type === "number" || type === "integer") return <NumberInput about={about} schema={schema} value={value} onChange={onChange} />;
  if (type === "string") {
    const text = typeof value === "string" ? value : "";
    const given = { ...about, value: text, placeholder: placeholderOf(schema), spellCheck: false };
    const change = (next: string) => onChange(next === "" && !isRequired ? undefined : next);
    if (isLong(schema) || text.includes("\n")) return <textarea {...given} rows={3} onChange={(event) => change(event.target.value)} />;
    return <input {...given} type="text" autoComplete="off" onChange={(event) => change(event.target.value)} />;
  }
  return <JsonInput about={about} type={type} value={value} onChange={onChange} />;
}

interface OwnTextProps {
  about: { id: string; "aria-label": string | undefined; "aria-describedby": string | undefined; "aria-required": true | undefined };
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
}

function NumberInput({ about, schema, value, onChange }: OwnTextProps & { schema: Schema }) {
  const [text, setText] = useState(value === undefined ? "" : String(value));
  const change = (next: string) => {
    setText(next);
    const number = Number(next);
    onChange(next.trim() === "" ? undefined : Number.isFinite(number) ? number : next); // the server says what is wrong with it
  };
  return <input {...about} type="text" inputMode="decimal" autoComplete="off" value={text} placeholder={placeholderOf(schema)} onChange={(event) => change(event.target.value)} />;
}

function JsonInput({ about, type, value, onChange }: OwnTextProps & { type: string }) {
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value));
  const [wrong, setWrong] = useState(false);
  const change = (next: string) => {
    setText(next);
    try {
      onChange(next.trim() === "" ? undefined : (JSON.parse(next) as Json));
      setWrong(false);
    } catch {
      onChange(next);
      setWrong(true);
    }
  };
  return (
    <>
      <textarea {...about} rows={2} spellCheck={false} aria-invalid={wrong} value={text} placeholder={type === "array" ? "[…]" : type === "object" ? "{…}" : "JSON"} onChange={(event) => change(event.target.value)} />
      {wrong && <p className="small" role="alert">✕ This is not JSON yet.</p>}
    </>
  );
}

// What a schema says.

const propertiesOf = (schema: Schema): Schema => (isRecord(schema["properties"]) ? schema["properties"] : {});

/** The schema itself: behind a reference, or beside null. */
function resolve(schema: Json, root: Schema, depth = 0): Schema {
  if (!isRecord(schema) || depth > 5) return {};
  const reference = schema["$ref"];
  if (typeof reference === "string" && reference.startsWith("#/")) {
    let found: Json | undefined = root;
    for (const part of reference.slice(2).split("/")) found = isRecord(found) ? found[part.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined;
    return found === undefined ? {} : { ...resolve(found, root, depth + 1), ...(schema["description"] ? { description: schema["description"] } : {}) };
  }
  const ways = schema["anyOf"] ?? schema["oneOf"];
  if (Array.isArray(ways)) {
    const others = ways.filter((each) => !(isRecord(each) && each["type"] === "null"));
    if (others.length === 1 && others[0] !== undefined) {
      const { anyOf: _any, oneOf: _one, ...rest } = schema;
      return { ...resolve(others[0], root, depth + 1), ...rest };
    }
  }
  return schema;
}

function typeOf(schema: Schema): string {
  const type = Array.isArray(schema["type"]) ? schema["type"].find((each) => each !== "null") : schema["type"];
  if (typeof type === "string") return type;
  return isRecord(schema["properties"]) ? "object" : "any";
}

/** What a list has, if a field can show it. */
function itemsOf(schema: Schema, root: Schema): Schema | null {
  if (!isRecord(schema["items"])) return null;
  const items = resolve(schema["items"], root);
  const type = typeOf(items);
  return type === "object" ? (Object.keys(propertiesOf(items)).length > 0 ? items : null) : type === "array" || type === "any" ? null : items;
}

function typeWord(schema: Schema, type: string): string {
  const format = schema["format"];
  if (choicesOf(schema)) return "";
  if (type === "array" && isRecord(schema["items"])) return `list of ${typeOf(schema["items"])}`;
  return visibleText(typeof format === "string" ? `${type}, ${format}` : type === "any" ? "JSON" : type).slice(0, 60);
}

function choicesOf(schema: Schema): Json[] | null {
  if (Array.isArray(schema["enum"]) && schema["enum"].length <= 200) return schema["enum"];
  if ("const" in schema) return [schema["const"] ?? null];
  return typeOf(schema) === "boolean" ? [true, false] : null;
}

function placeholderOf(schema: Schema): string {
  const given = schema["default"] ?? (Array.isArray(schema["examples"]) ? schema["examples"][0] : undefined) ?? schema["example"];
  if (given === undefined || given === null) return "";
  const text = visibleText(typeof given === "string" ? given : JSON.stringify(given)).slice(0, 80);
  return schema["default"] === undefined ? `such as ${text}` : text;
}

function isLong(schema: Schema): boolean {
  const limit = schema["maxLength"];
  const about = `${typeof schema["format"] === "string" ? schema["format"] : ""} ${typeof schema["contentMediaType"] === "string" ? schema["contentMediaType"] : ""}`;
  return (typeof limit === "number" && limit > 200) || about.includes("text/");
}
