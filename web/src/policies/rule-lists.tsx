// The rules in force, the strictest first, each with its place.
import type { ReactNode } from "react";
import { Table, type Column } from "../shell/table";
import { Visible } from "../shell/visible";
import { AgentName, Place, VerdictMark } from "./marks";
import { isEgress, limitsOf, type Budget, type Policies, type Rule } from "./rules";

interface Props {
  policies: Policies;
  search: string;
  /** Ask for a change of a rule; without it, nobody may. */
  onChange: ((rule: Rule, removes: boolean) => void) | null;
}

const keyOf = (rule: Rule) => `${rule.place} ${rule.verdict} ${rule.pattern} ${rule.agent} ${rule.when}`;

export function RuleLists({ policies, search, onChange }: Props) {
  const fits = (texts: (string | null)[]) => texts.some((text) => text?.toLowerCase().includes(search.trim().toLowerCase()));
  const shown = policies.rules.filter((rule) => fits([rule.verdict, rule.pattern, rule.agent, rule.when, rule.reason, rule.place]));
  const budgets = policies.budgets.filter((one) => fits([one.pattern, one.agent, one.place]));
  const [rules, egress] = [shown.filter((one) => !isEgress(one)), shown.filter(isEgress)];
  const all = policies.rules;
  return (
    <>
      <Rules rules={rules} total={all.filter((one) => !isEgress(one)).length} onChange={onChange} />
      <Section title="Requests to origins" count={egress.length} about={<>What <code>fetch</code> may reach, beside what the preset says.</>}>
        {egress.length > 0 && <Table caption="Rules for requests" rows={egress} keyOf={keyOf} columns={EGRESS_COLUMNS} />}
      </Section>
      <Section title="Budgets" count={budgets.length} about="How many calls an agent may make. Beside them, the limits of a run count.">
        {budgets.length > 0 && <Table caption="Budgets" rows={budgets} keyOf={(one) => `${one.place} ${one.pattern} ${one.agent}`} columns={BUDGET_COLUMNS} />}
      </Section>
      <DeniedWrites policies={policies} />
    </>
  );
}

function Rules({ rules, total, onChange }: { rules: Rule[]; total: number; onChange: Props["onChange"] }) {
  const changing: Column<Rule>[] = onChange
    ? [{ name: "", className: "rule-actions", render: (rule) => rule.file && (
        <>
          <button className="plain" aria-label={`Change the rule for ${rule.pattern}`} onClick={() => onChange(rule, false)}>Change</button>
          <button className="plain" aria-label={`Remove the rule for ${rule.pattern}`} onClick={() => onChange(rule, true)}>Remove</button>
        </>
      ) }]
    : [];
  const about = total ? "Deny wins over ask, and ask over allow. Where no rule applies, the preset decides." : "There are none: the preset decides about every call.";
  return (
    <Section title="Rules" count={rules.length} about={about}>
      {rules.length > 0 && <Table caption="Rules, the strictest first" rows={rules} keyOf={keyOf} columns={[...RULE_COLUMNS, ...changing]} />}
    </Section>
  );
}

export const RULE_COLUMNS: Column<Rule>[] = [
  { name: "Verdict", render: (rule) => <VerdictMark verdict={rule.verdict} /> },
  { name: "Tools", className: "rule-what", render: (rule) => <What rule={rule} /> },
  { name: "Agent", render: (rule) => <AgentName agent={rule.agent} /> },
  { name: "Place", className: "rule-place", render: (rule) => <Place place={rule.place} /> },
];

const EGRESS_COLUMNS: Column<Rule>[] = [
  { name: "Verdict", render: (rule) => <VerdictMark verdict={rule.verdict} /> },
  { name: "Origin", className: "rule-what", render: (rule) => <What rule={rule} /> },
  { name: "Methods", render: (rule) => (rule.methods?.length ? rule.methods.join(", ") : <span className="quiet">all methods</span>) },
  { name: "Agent", render: (rule) => <AgentName agent={rule.agent} /> },
  { name: "Place", className: "rule-place", render: (rule) => <Place place={rule.place} /> },
];

export const BUDGET_COLUMNS: Column<Budget>[] = [
  { name: "Tools", className: "rule-what", render: (one) => <code><Visible text={one.pattern} limit={200} /></code> },
  { name: "Calls", render: (one) => limitsOf(one) },
  { name: "Agent", render: (one) => <AgentName agent={one.agent} /> },
  { name: "Place", className: "rule-place", render: (one) => <Place place={one.place} /> },
];

/** The pattern of a rule, its condition and its reason. */
export function What({ rule }: { rule: Rule }) {
  return (
    <>
      <code className="pattern"><Visible text={rule.pattern} limit={300} /></code>
      {rule.when && <span className="condition">when <code><Visible text={rule.when} limit={500} /></code></span>}
      {rule.allow_private && <span className="tag">private addresses too</span>}
      {rule.reason && <span className="quiet reason-text"><Visible text={rule.reason} limit={300} /></span>}
    </>
  );
}

function DeniedWrites({ policies }: { policies: Policies }) {
  const { denied_writes: denied } = policies;
  if (denied.length === 0) return null;
  return (
    <Section title="Sources whose writes are denied" count={denied.length}>
      <Table
        caption="Sources whose writes are denied"
        rows={denied}
        keyOf={(one) => one.source}
        columns={[
          { name: "Source", render: (one) => <code><Visible text={one.source} limit={100} /></code> },
          { name: "Place", render: (one) => <Place place={one.place} /> },
        ]}
      />
    </Section>
  );
}

function Section({ title, count, about, children }: { title: string; count: number; about?: ReactNode; children: ReactNode }) {
  return (
    <section className="rule-section" aria-label={title}>
      <h2>{title} <span className="quiet">{count}</span></h2>
      {about && <p className="small quiet">{about}</p>}
      {children}
    </section>
  );
}
