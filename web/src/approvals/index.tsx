// What waits for a person: calls, grouped by their run, and plans. One answer each, or one for all of a run.
import { useEffect, useRef } from "react";
import { get } from "../api";
import { useKeys } from "../shell/keys";
import { useLoaded } from "../shell/loaded";
import { useApprovals } from "../shell/pending";
import { Link, navigate, pathArgument, usePath, useQuery } from "../shell/router";
import { Screen } from "../shell/screen";
import { isApprover, useMe } from "../shell/session";
import { Empty, Loading, Problem } from "../shell/states";
import { Visible } from "../shell/visible";
import type { Approval, Plan } from "../types";
import { AnswerForm } from "./answer-form";
import { groupsOf, GroupList } from "./group-list";
import { NoticeButton } from "./notices";
import { Plans } from "./plans";
import { Standing } from "./standing";
import "./approvals.css";

const PLANS_POLL_MS = 3_000;

export default function Approvals() {
  const me = useMe();
  if (!isApprover(me))
    return <Screen title="Approvals"><Empty title="Only people answer here">{`The role ${me.role} can't answer what is asked about an agent's calls.`}</Empty></Screen>;
  return <Inbox />;
}

function Inbox() {
  const [query] = useQuery();
  const view = query.get("view") ?? "waiting";
  const waiting = useApprovals();
  const plans = useLoaded("plans", async (signal) => (await get<{ plans: Plan[] }>("/v1/plans", { signal })).plans, PLANS_POLL_MS);
  const tabs = [
    { id: "waiting", name: "Calls", count: waiting?.data?.length ?? 0 },
    { id: "plans", name: "Plans", count: plans.data?.length ?? 0 },
    { id: "standing", name: "Always allowed", count: 0 },
  ];
  return (
    <Screen title="Approvals" actions={<NoticeButton />}>
      <nav className="tabs approvals-tabs" aria-label="What to show">
        {tabs.map((tab) => (
          <Link key={tab.id} href={tab.id === "waiting" ? "/approvals" : `/approvals?view=${tab.id}`} aria-current={view === tab.id ? "page" : undefined}>
            {tab.name}{tab.count > 0 && <span className="count">{tab.count}</span>}
          </Link>
        ))}
      </nav>
      {view === "plans" ? <Plans plans={plans} /> : view === "standing" ? <Standing /> : <Calls />}
    </Screen>
  );
}

function Calls() {
  const loaded = useApprovals();
  const chosenId = pathArgument(usePath(), "/approvals/");
  // What was answered here, and in which list it stood: the list may not know yet. No state: it counts when the address changes.
  const given = useRef(new Map<string, Approval[] | null>());
  const isGiven = ({ id, problem }: Approval) => given.current.has(id) && (problem === null || given.current.get(id) === loaded?.data);
  const waiting = (loaded?.data ?? []).filter((one) => one.state === "waiting" && !isGiven(one));
  const groups = groupsOf(waiting);
  const order = groups.flatMap((group) => group.requests);
  const chosen = order.find((one) => one.id === chosenId) ?? (chosenId ? null : order[0]) ?? null;
  // The address names what is shown. When somebody else answers it, no other call takes its place below a finger on a key.
  useEffect(() => {
    if (chosen && !chosenId) navigate(`/approvals/${chosen.id}`, { replace: true });
  }, [chosen, chosenId]);
  const step = (by: number) => {
    const at = chosen ? order.indexOf(chosen) : -1;
    const next = order[Math.max(0, Math.min(order.length - 1, at + by))];
    if (next) navigate(`/approvals/${next.id}`, { replace: true });
  };
  const answered = (ids: string[]) => {
    ids.forEach((id) => given.current.set(id, loaded?.data ?? null));
    const rest = order.filter((one) => !ids.includes(one.id));
    const at = Math.min(chosen ? order.indexOf(chosen) : 0, rest.length - 1);
    navigate(rest[at] ? `/approvals/${rest[at].id}` : "/approvals", { replace: true });
    loaded?.reload();
  };
  useKeys({ j: () => step(1), k: () => step(-1), ArrowDown: () => step(1), ArrowUp: () => step(-1) });
  if (loaded?.error) return <Problem error={loaded.error} retry={loaded.reload} />;
  if (!loaded?.data) return <Loading />;
  if (!chosen && chosenId)
    return order.length === 0 ? <Elsewhere key={chosenId} id={chosenId} /> : (
      <div className="inbox">
        <GroupList groups={groups} chosen={chosenId} onAnswered={answered} />
        <div><Elsewhere key={chosenId} id={chosenId} /></div>
      </div>
    );
  if (!chosen) return <Empty title="Nothing needs you">Calls that a rule asks about appear here as soon as a program makes them.</Empty>;
  return (
    <div className="inbox">
      <GroupList groups={groups} chosen={chosen.id} onAnswered={answered} />
      <AnswerForm key={chosen.id + chosen.digest} approval={chosen} onAnswered={answered} />
    </div>
  );
}

/** A link to a call that does not wait, or not any more. */
function Elsewhere({ id }: { id: string }) {
  const found = useLoaded(`approval ${id}`, (signal) => get<{ approval: Approval }>(`/v1/approvals/${encodeURIComponent(id)}`, { signal }));
  if (found.error) return <Problem error={found.error} />;
  if (!found.data) return <Loading />;
  const { approval } = found.data;
  return (
    <>
      <div className="answered" role="status"><strong><Ended approval={approval} /></strong> <Link href="/approvals">Show what waits</Link></div>
      <AnswerForm approval={approval} readOnly onAnswered={() => undefined} />
    </>
  );
}

function Ended({ approval }: { approval: Approval }) {
  const { answer, state } = approval;
  if (!answer || state === "waiting") return ENDED[state] ?? `This call is ${state}.`;
  return <>This call was {answer.approved ? "approved" : "denied"} by <Visible text={answer.approver} />{answer.reason && <>: <Visible text={answer.reason} /></>}.</>;
}

const ENDED: Record<string, string> = {
  expired: "This call has expired, and was not made.",
  ended: "The host of this call has ended, and with it the run.",
  withdrawn: "This call is not asked about any more.",
};
