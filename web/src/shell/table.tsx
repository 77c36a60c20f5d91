// A list as a table; on a narrow screen each row is a card. The first column links to what the row is about.
import type { ReactNode } from "react";
import { Link } from "./router";

export interface Column<Row> {
  name: string;
  render: (row: Row) => ReactNode;
  className?: string;
}

interface Props<Row> {
  caption: string;
  columns: Column<Row>[];
  rows: Row[];
  keyOf: (row: Row) => string;
  hrefOf?: (row: Row) => string;
}

export function Table<Row>({ caption, columns, rows, keyOf, hrefOf }: Props<Row>) {
  return (
    <table className="list">
      <caption className="hidden">{caption}</caption>
      <thead>
        <tr>{columns.map((column) => <th key={column.name} scope="col" className={column.className}>{column.name}</th>)}</tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map((column, at) => (
              <td key={column.name} className={column.className} data-name={column.name}>
                {at === 0 && hrefOf ? <Link className="row-link" href={hrefOf(row)}>{column.render(row)}</Link> : column.render(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
