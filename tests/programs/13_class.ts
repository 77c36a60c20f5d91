class Report {
  private rows: string[] = [];
  constructor(readonly title: string) {}
  add(line: string): this { this.rows.push(line); return this; }
  toString() { return [this.title, ...this.rows].join("\n"); }
}
const report = new Report("Orders");
(await tools.list_orders({ customer: "ada" })).forEach((o) => report.add(`${o.id}: ${o.total} ${o.currency}`));
return String(report);
