// How many calls wait for a person, for the navigation and the title of every page.
import { createContext, use } from "react";
import { get } from "../api";
import type { Approval } from "../types";
import { useLoaded, type Loaded } from "./loaded";

const POLL_MS = 1_500;
const HIDDEN_POLL_MS = 4_000; // the title of the tab has the count, and the browser may show a notice

export const PendingContext = createContext<Loaded<Approval[]> | null>(null);

export function useLoadedApprovals(allowed: boolean): Loaded<Approval[]> {
  const load = async (signal: AbortSignal) =>
    allowed ? (await get<{ approvals: Approval[] }>("/v1/approvals", { signal })).approvals : [];
  return useLoaded("approvals", load, allowed ? POLL_MS : undefined, allowed ? HIDDEN_POLL_MS : undefined);
}

/** The calls that wait, as the shell keeps loading them. */
export const useApprovals = () => use(PendingContext);

export const usePendingCount = () => use(PendingContext)?.data?.filter((one) => one.state === "waiting").length ?? 0;
