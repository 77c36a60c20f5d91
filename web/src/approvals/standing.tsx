// Standing approvals: calls that are not asked about any more, until somebody revokes that.
import { useState } from "react";
import { get, remove } from "../api";
import { Confirm } from "../shell/dialog";
import { useLoaded } from "../shell/loaded";
import { Empty, Loading, Problem } from "../shell/states";
import { Table } from "../shell/table";
import { Ago } from "../shell/time";
import { say } from "../shell/toasts";
import { Visible } from "../shell/visible";
import type { StandingApproval } from "../types";

export function Standing() {
  const found = useLoaded("standing", async (signal) => (await get<{ standing: StandingApproval[] }>("/v1/approvals/standing", { signal })).standing, 5_000);
  const [revoking, setRevoking] = useState<StandingApproval | null>(null);
  if (found.error) return <Problem error={found.error} retry={found.reload} />;
  if (!found.data) return <Loading />;
  if (found.data.length === 0) return <Empty title="Nothing is always allowed">Answer a call with “calls like this, always”, and it stands here until you revoke it.</Empty>;
  return (
    <>
      <Table
        caption="Standing approvals"
        rows={found.data}
        keyOf={(one) => one.id}
        columns={[
          { name: "Tool", render: (one) => <code><Visible text={one.tool} /></code> },
          { name: "Agent", render: (one) => <Visible text={one.agent} /> },
          { name: "Shape of the arguments", render: (one) => <code className="quiet"><Visible text={one.shape} limit={200} /></code> },
          { name: "By", render: (one) => <Visible text={one.approver} /> },
          { name: "Since", render: (one) => <Ago time={one.given} />, className: "number quiet" },
          { name: "", render: (one) => <button className="destructive" onClick={() => setRevoking(one)}>Revoke</button>, className: "number" },
        ]}
      />
      {revoking && (
        <Confirm title="Revoke this approval?" verb="Revoke" destructive onClose={() => setRevoking(null)} onConfirm={async () => {
          await remove(`/v1/approvals/standing/${encodeURIComponent(revoking.id)}`);
          say("Revoked: such calls ask again.");
          found.reload();
        }}>
          <p>Calls of <code><Visible text={revoking.tool} /></code> by <Visible text={revoking.agent} /> ask again.</p>
        </Confirm>
      )}
    </>
  );
}
