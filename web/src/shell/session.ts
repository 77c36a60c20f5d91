// Who looks at these pages.
import { createContext, use } from "react";
import { get, keepKey, post } from "../api";
import type { Me } from "../types";

export const SessionContext = createContext<Me | null>(null);

/** Who is signed in. Only used below the shell, where somebody is. */
export function useMe(): Me {
  const me = use(SessionContext);
  if (!me) throw new Error("nobody is signed in");
  return me;
}

export const isApprover = (me: Me) => me.role === "approver" || me.role === "admin";
export const isAdmin = (me: Me) => me.role === "admin";
export const runsPrograms = (me: Me) => me.role === "agent" || me.role === "host" || me.role === "admin";

export const loadMe = (signal?: AbortSignal) => get<Me>("/v1/me", signal ? { signal } : {});

/** Sign in with a one-time code. */
export async function signIn(code: string): Promise<void> {
  const { key } = await post<{ key: string }>("/v1/sign-in", {}, { authorization: `Link ${code}` });
  keepKey(key);
}

export async function signOut(): Promise<void> {
  await post("/v1/sign-out");
  keepKey(null);
  location.assign("/sign-in");
}
