// Agents and other holders of tokens: who may do what, what each agent's programs see, and new tokens.
import { useMemo, useState } from "react";
import { get, remove } from "../api";
import { Confirm } from "../shell/dialog";
import { useKeys } from "../shell/keys";
import { useLoaded } from "../shell/loaded";
import { Link, navigate, useQuery } from "../shell/router";
import { Screen } from "../shell/screen";
import { isAdmin, useMe } from "../shell/session";
import { Empty, Loading, Problem } from "../shell/states";
import { Ago } from "../shell/time";
import { say } from "../shell/toasts";
import { Visible } from "../shell/visible";
import { AddAgent } from "./add-agent";
import { AgentDetails } from "./agent-details";
import { hrefOf, isAgent, isRefused, isServers, keyOf, type Holder } from "./agents";
import "../run/run.css";
import "../runs/runs.css";
import "./agents.css";

const POLL_MS = 5_000;

export default function Agents() {
  const me = useMe();
  if (isAdmin(me)) return <Holders />;
  return <Screen title="Agents"><Empty title="Tokens are for admins">{`The role ${me.role} does not see them.`}</Empty></Screen>;
}

function Holders() {
  const found = useLoaded("agents", async (signal) => (await get<{ agents: Holder[] }>("/v1/agents", { signal })).agents, POLL_MS);
  const [query] = useQuery();
  const [making, setMaking] = useState<{ named: string } | null>(null);
  const [removing, setRemoving] = useState<Holder | null>(null);
  const holders = useMemo(() => [...(found.data ?? [])].sort((a, b) => Number(isServers(b)) - Number(isServers(a)) || a.name.localeCompare(b.name)), [found.data]);
  const [name, role] = [query.get("name"), query.get("role") ?? "agent"];
  const chosen = holders.find((one) => one.name === name && one.role === role) ?? (name ? null : (holders[0] ?? null));
  const step = (by: number) => {
    const next = holders[Math.max(0, Math.min(holders.length - 1, (chosen ? holders.indexOf(chosen) : -1) + by))];
    if (next) navigate(hrefOf(next), { replace: true });
  };
  useKeys({ j: () => step(1), k: () => step(-1) });
  return (
    <Screen title="Agents" actions={<button className="primary" onClick={() => setMaking({ named: "" })}>Make a token</button>}>
      {found.error && <Problem error={found.error} retry={found.reload} />}
      {!found.data && !found.error && <Loading />}
      {found.data && (
        <div className="agents">
          <div className="agents-lists">
            <List title="Agents" about="They run programs." holders={holders.filter(isAgent)} chosen={chosen} />
            <List title="People and machines" about="They answer, administer or watch." holders={holders.filter((one) => !isAgent(one))} chosen={chosen} />
          </div>
          {chosen ? (
            <AgentDetails key={keyOf(chosen)} holder={chosen} onRemove={() => setRemoving(chosen)} onToken={() => setMaking({ named: chosen.name })} />
          ) : (
            <Empty title="There is nobody of this name">The token may have been removed.</Empty>
          )}
        </div>
      )}
      {making && <AddAgent named={making.named} configured={holders.filter((one) => one.configured && !isServers(one)).map((one) => one.name)} onMade={found.reload} onClose={() => setMaking(null)} />}
      {removing && <Remove holder={removing} onClose={() => setRemoving(null)} onRemoved={found.reload} />}
    </Screen>
  );
}

function List({ title, about, holders, chosen }: { title: string; about: string; holders: Holder[]; chosen: Holder | null }) {
  return (
    <section className="card" aria-label={title}>
      <header className="agents-head"><h2>{title} <span className="quiet">{holders.length}</span></h2><span className="small quiet">{about}</span></header>
      {holders.length === 0 && <p className="small quiet agents-none">Nobody has such a token yet.</p>}
      <ul>
        {holders.map((one) => (
          <li key={keyOf(one)}>
            <Link className="agent-row" href={hrefOf(one)} aria-current={one === chosen ? "true" : undefined}>
              <span className="agent-name"><Visible text={one.name} limit={80} /></span>
              <span className="tag">{one.role}</span>
              <span className="small quiet agent-token">{tokenOf(one)}</span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

function tokenOf(holder: Holder) {
  if (isRefused(holder)) return <span className="urgent">refused: not in the settings</span>;
  if (holder.created !== null) return <>token made <Ago time={holder.created} /></>;
  return isServers(holder) ? "the token of the server" : "no token";
}

function Remove({ holder, onClose, onRemoved }: { holder: Holder; onClose: () => void; onRemoved: () => void }) {
  const confirm = async () => {
    await remove(`/v1/agents/${holder.role}/${encodeURIComponent(holder.name)}`);
    say(`Removed: the token of ${holder.name} counts no more.`);
    onRemoved();
  };
  return (
    <Confirm title="Remove this token?" verb="Remove the token" destructive onConfirm={confirm} onClose={onClose}>
      <p>The server refuses the token of the {holder.role} <strong><Visible text={holder.name} limit={80} /></strong> within a second, and ends what it had opened. It can't be brought back; a new one can be made.</p>
    </Confirm>
  );
}
