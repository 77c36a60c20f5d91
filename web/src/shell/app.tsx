// Which screen an address shows. Each is loaded when it is first needed.
import { Component, lazy, Suspense, type ComponentType, type ReactNode } from "react";
import { ApiError, asApiError, unreachable } from "../api";
import { useNotices } from "../approvals/notices";
import { SignIn } from "../sign-in";
import { Layout } from "./layout";
import { useLoaded } from "./loaded";
import { PendingContext, useLoadedApprovals } from "./pending";
import { Link, usePath } from "./router";
import { Screen } from "./screen";
import { isApprover, loadMe, SessionContext } from "./session";
import { Empty, Loading, Problem } from "./states";
import type { Me } from "../types";

const screen = (load: () => Promise<{ default: ComponentType }>) =>
  lazy(() => load().catch(() => Promise.reject(unreachable("this page could not be loaded"))));

const Runs = screen(() => import("../runs"));
const RunScreen = screen(() => import("../run"));
const Approvals = screen(() => import("../approvals"));
const Tools = screen(() => import("../tools"));
const Sources = screen(() => import("../sources"));
const Playground = screen(() => import("../playground"));
const Policies = screen(() => import("../policies"));
const Agents = screen(() => import("../agents"));
const Audit = screen(() => import("../audit"));

const SCREENS: Record<string, ReactNode> = {
  "": <Runs />,
  runs: <Runs />,
  approvals: <Approvals />,
  tools: <Tools />,
  sources: <Sources />,
  playground: <Playground />,
  policies: <Policies />,
  agents: <Agents />,
  audit: <Audit />,
};

export function App() {
  return usePath() === "/sign-in" ? <SignIn /> : <SignedIn />;
}

function SignedIn() {
  const { data: me, error, reload } = useLoaded("me", loadMe);
  if (error?.status === 401) return <SignIn />;
  if (error) return <main className="screen"><Problem error={error} retry={reload} /></main>;
  return me ? <Pages me={me} /> : null;
}

function Pages({ me }: { me: Me }) {
  const approvals = useLoadedApprovals(isApprover(me));
  const path = usePath();
  useNotices(approvals.data);
  if (approvals.error?.status === 401) return <SignIn />; // signed out meanwhile, perhaps in another tab
  return (
    <SessionContext value={me}>
      <PendingContext value={approvals}>
        <Layout me={me}>
          <Boundary key={keyOf(path)}>
            <Suspense fallback={<main className="screen"><Loading /></main>}>{screenOf(path)}</Suspense>
          </Boundary>
        </Layout>
      </PendingContext>
    </SessionContext>
  );
}

/** A screen begins anew for another thing that it shows; in a list beside what is shown, the list stays. */
const keyOf = (path: string) => (KEPT_SCREENS.has(path.split("/")[1] ?? "") ? path.split("/")[1] : path);
const KEPT_SCREENS = new Set(["approvals", "tools", "sources"]);

function screenOf(path: string): ReactNode {
  const [first = "", second] = path.slice(1).split("/");
  if (first === "runs" && second) return <RunScreen />;
  return SCREENS[first] ?? <Screen title="Not found"><Empty title="There is no such page"><Link href="/runs">Show the runs</Link></Empty></Screen>;
}

/** Shows what went wrong in a page, and keeps the navigation. */
class Boundary extends Component<{ children: ReactNode }, { error: ApiError | null }> {
  override state: { error: ApiError | null } = { error: null };
  static getDerivedStateFromError(error: unknown) {
    return { error: asApiError(error) };
  }
  override render() {
    const { error } = this.state;
    return error ? <Screen title="This page failed"><Problem error={error} retry={() => location.reload()} /></Screen> : this.props.children;
  }
}
