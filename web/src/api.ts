// The client of the API at /v1. The session's cookie says who asks. Its key, in `X-Gloveport`, says that these pages do: the
// browser sends the cookie with requests of others too, but gives what these pages keep to their origin alone.
import type { Json } from "./types";

/** An error as the API reports it: every endpoint has this one shape. */
export class ApiError extends Error {
  override name = "ApiError";
  constructor(
    readonly code: string,
    message: string,
    readonly hint: string | null = null,
    readonly data: Json = null,
    readonly status = 0,
  ) {
    super(message);
  }
}

const KEY_NAME = "gloveport-session-key";

/** What addresses with versions have answered last: it is asked for again only when it has changed. */
const kept = new Map<string, { version: string; answer: unknown }>();

/** Keep the key of the session that somebody has signed in to; without one, forget it. */
export function keepKey(key: string | null): void {
  kept.clear();
  if (key === null) localStorage.removeItem(KEY_NAME);
  else localStorage.setItem(KEY_NAME, key);
}

/** The key of the session, which each request names; "1", which is no key, when nobody has signed in. */
export function keptKey(): string {
  return localStorage.getItem(KEY_NAME) ?? "1";
}

type Query = Record<string, string | number | undefined>;

export interface ApiRequest {
  query?: Query;
  body?: unknown;
  signal?: AbortSignal;
  /** Stands for the session's cookie: how somebody signs in. */
  authorization?: string;
}

/** The address of an endpoint. Members of the query that are undefined or empty are left out. */
export function endpointUrl(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

export function get<T>(path: string, request: ApiRequest = {}): Promise<T> {
  return send<T>("GET", path, request);
}

export function post<T>(path: string, body: unknown = {}, request: ApiRequest = {}): Promise<T> {
  return send<T>("POST", path, { ...request, body });
}

export function remove<T>(path: string, request: ApiRequest = {}): Promise<T> {
  return send<T>("DELETE", path, request);
}

async function send<T>(method: string, path: string, { query, body, signal, authorization }: ApiRequest): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json", "X-Gloveport": keptKey() };
  if (authorization) headers["Authorization"] = authorization;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const url = endpointUrl(path, query);
  const known = method === "GET" ? kept.get(url) : undefined;
  if (known) headers["If-None-Match"] = known.version;
  let response: Response;
  try {
    response = await fetch(url, {
      method,
      headers,
      credentials: "same-origin",
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw unreachable();
  }
  if (method !== "GET") kept.clear(); // what was changed here is looked at anew
  if (known && response.status === 304) return known.answer as T;
  const answer: unknown = await response.json().catch(() => null);
  const version = response.headers.get("ETag");
  if (response.ok && version) kept.set(url, { version, answer });
  if (response.ok && answer !== null) return answer as T;
  throw problemOf(answer, response.status);
}

/** The error of a request that got no answer. */
export function unreachable(message = "the server does not answer"): ApiError {
  return new ApiError("unreachable", message, "is `gloveport serve` still running?");
}

/** The error that an answer reports. */
export function problemOf(answer: unknown, status: number): ApiError {
  const found = (answer as { error?: { code?: string; message?: string; hint?: string | null; data?: Json } } | null)?.error;
  const code = found?.code ?? (status === 401 ? "signed-out" : "no-answer");
  const message = found?.message ?? `the server answered with status ${status}`;
  return new ApiError(code, message, found?.hint ?? null, found?.data ?? null, status);
}

/** Any failure as an ApiError, so that one component shows them all. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError("page-failed", error instanceof Error ? error.message : String(error), "reload the page");
}
