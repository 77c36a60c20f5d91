// Loads runs: the first page again and again, so that statuses are live, and further pages when somebody asks.
import { useState } from "react";
import { asApiError, get, type ApiError } from "../api";
import { useDelayed, useLoaded } from "../shell/loaded";
import type { Run, RunPage } from "../types";

const POLL_MS = 1_500;
const PAGE_ROWS = 50;

export interface RunFilters {
  status: string;
  tool: string;
  agent: string;
  search: string;
}

interface Older {
  key: string;
  runs: Run[];
  next: string | null;
  error: ApiError | null;
}

export function useRuns(filters: RunFilters) {
  const given = useDelayed(JSON.stringify(filters));
  const query = { ...(JSON.parse(given) as RunFilters), limit: PAGE_ROWS };
  const first = useLoaded(given, (signal) => get<RunPage>("/v1/runs", { query, signal }), POLL_MS);
  const [older, setOlder] = useState<Older | null>(null);
  const rest = older?.key === given ? older : null;
  const next = rest ? rest.next : (first.data?.next ?? null);
  const loadMore = async () => {
    if (!next) return;
    try {
      const page = await get<RunPage>("/v1/runs", { query: { ...query, cursor: next } });
      // What the first page had until now may have moved below it meanwhile.
      setOlder({ key: given, runs: [...(rest?.runs ?? first.data?.runs ?? []), ...page.runs], next: page.next, error: null });
    } catch (error) {
      setOlder({ key: given, runs: rest?.runs ?? [], next, error: asApiError(error) });
    }
  };
  const runs = new Map([...(rest?.runs ?? []), ...(first.data?.runs ?? [])].map((run) => [run.run, run]));
  return {
    runs: [...runs.values()].sort((a, b) => b.started.localeCompare(a.started)),
    error: first.error ?? rest?.error ?? null,
    loading: first.loading,
    more: next !== null,
    loadMore: () => void loadMore(),
    reload: first.reload,
  };
}
