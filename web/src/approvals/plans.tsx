// Plans that nobody has approved yet.
import { Empty, Loading, Problem } from "../shell/states";
import type { Loaded } from "../shell/loaded";
import { Link } from "../shell/router";
import type { Plan } from "../types";
import { PlanView } from "../run/plan-view";
import "../run/run.css";

export function Plans({ plans }: { plans: Loaded<Plan[]> }) {
  if (plans.error) return <Problem error={plans.error} retry={plans.reload} />;
  if (!plans.data) return <Loading />;
  if (plans.data.length === 0) return <Empty title="No plan waits">A program that runs with <code>--plan</code> holds its writes back until you approve them here.</Empty>;
  return (
    <div className="plans">
      {plans.data.map((plan) => (
        <div key={plan.run}>
          <p className="small quiet">{plan.agent} planned in <Link href={`/runs/${plan.run}`}>run {plan.run.slice(0, 8)}</Link></p>
          <PlanView plan={plan} />
        </div>
      ))}
    </div>
  );
}
