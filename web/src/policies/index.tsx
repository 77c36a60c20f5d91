// Policies: the rules in force with their places, and the decision on a hypothetical call. An admin changes rules here.
import { useState } from "react";
import { get } from "../api";
import { useLoaded } from "../shell/loaded";
import { Link, useQuery } from "../shell/router";
import { Screen } from "../shell/screen";
import { isAdmin, isApprover, useMe } from "../shell/session";
import { Empty, Loading, Problem } from "../shell/states";
import { Visible } from "../shell/visible";
import { ChangeRule, type Wanted } from "./change-rule";
import { Explain } from "./explain";
import { Place } from "./marks";
import { RuleLists } from "./rule-lists";
import type { Policies } from "./rules";
import "../run/run.css";
import "./policies.css";

const POLL_MS = 5_000;

export default function PoliciesScreen() {
  const me = useMe();
  if (isApprover(me)) return <Rules />;
  return <Screen title="Policies"><Empty title="Rules are for people">{`The role ${me.role} does not see them.`}</Empty></Screen>;
}

function Rules() {
  const me = useMe();
  const [query, change] = useQuery();
  const explains = query.get("view") === "explain";
  const found = useLoaded("policies", (signal) => get<Policies>("/v1/policies", { signal }), POLL_MS);
  const [wanted, setWanted] = useState<Wanted | null>(null);
  const policies = found.data;
  const add = isAdmin(me) && <button onClick={() => setWanted({ isNew: true, removes: false, rule: { pattern: "" } })}>Add a rule</button>;
  return (
    <Screen title="Policies" actions={add}>
      <nav className="tabs page-tabs" aria-label="What to show">
        <Link href="/policies" aria-current={explains ? undefined : "page"}>Rules</Link>
        <Link href="/policies?view=explain" aria-current={explains ? "page" : undefined}>Explain a call</Link>
      </nav>
      {found.error && <Problem error={found.error} retry={found.reload} />}
      {!policies ? !found.error && <Loading /> : explains ? (
        <Explain agents={policies.agents} onRule={isAdmin(me) ? setWanted : null} />
      ) : (
        <>
          <Preset policies={policies} />
          <Ignored policies={policies} />
          {policies.rules.length > 6 && (
            <div className="filters"><input type="search" data-search aria-label="Search the rules" placeholder="Search by tool, agent, reason or file   /" value={query.get("q") ?? ""} onChange={(event) => change({ q: event.target.value })} /></div>
          )}
          <RuleLists policies={policies} search={query.get("q") ?? ""} onChange={isAdmin(me) ? (rule, removes) => setWanted({ rule, removes, isNew: false }) : null} />
        </>
      )}
      {wanted && policies && <ChangeRule wanted={wanted} agents={policies.agents} onClose={() => setWanted(null)} onMade={found.reload} />}
    </Screen>
  );
}

function Preset({ policies }: { policies: Policies }) {
  return (
    <section className="card preset" aria-label="Preset">
      <div><span className="quiet small">Preset</span><strong>{policies.preset}</strong></div>
      <p>{policies.meaning}.</p>
      <span className="small quiet">{policies.preset_place ? <Place place={policies.preset_place} /> : "the default"}</span>
    </section>
  );
}

function Ignored({ policies }: { policies: Policies }) {
  if (policies.ignored.length === 0) return null;
  return (
    <section className="note" aria-label="Settings without effect">
      <strong>{policies.ignored.length === 1 ? "One setting has" : `${policies.ignored.length} settings have`} no effect</strong>
      <ul>
        {policies.ignored.map((one, at) => (
          <li key={at}><code><Visible text={one.setting} limit={200} /></code> in <Place place={one.place} />: <Visible text={one.reason} limit={200} /></li>
        ))}
      </ul>
    </section>
  );
}
