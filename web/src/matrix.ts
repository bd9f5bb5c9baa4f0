// What an audit says, arranged for reading: lines of workloads, columns of domains, one cell an event.

import { natural } from "./dom.ts";
import type { AuditCase, AuditData, AuditRow } from "./types.ts";

/** The verdicts, the worst first. */
export const VERDICTS = ["LOST", "OUTAGE", "DEGRADED", "SURVIVES", "UNKNOWN"];

export interface Cell {
  case: AuditCase;
  row: AuditRow | undefined;
  /** True if a person should act on it. */
  isHurt: boolean;
  /** Why its drain never ends. */
  blocked: string | undefined;
}

/** A workload, or pods without a workload that fare alike. */
export interface Line {
  /** Its name as findings and fixes have it: `shop/deployment/web`. */
  of: string;
  name: string;
  kind: string;
  names: string[];
  /** By the case's index. */
  cells: Map<number, Cell>;
  sort: "hurt" | "single" | "unknown" | "survives";
}

/** The cases of the same domains, one an event. */
export interface Column { domains: string[]; name: string; cases: number[]; isHurt: boolean }

export interface Matrix { columns: Column[]; lines: Line[]; events: string[] }

export function matrix(data: AuditData): Matrix {
  const { cases } = data.report;
  const lines = new Map<string, Line>();
  cases.forEach((one, c) => {
    const hurt = new Set(data.hurt[c]);
    const add = (of: string, row: AuditRow | undefined, isHurt: boolean) => {
      let line = lines.get(of);
      if (!line) lines.set(of, (line = { of, name: row ? nameOf(row) : of, kind: row?.kind ?? "", names: [], cells: new Map(), sort: "survives" }));
      const blocked = one.blocked?.find((blocked) => blocked.object === of)?.why;
      line.cells.set(c, { case: one, row, isHurt, blocked });
    };
    one.workloads.forEach((row, r) => add(ofRow(row), row, hurt.has(r)));
  });
  const all = fold([...lines.values()]);
  for (const line of all) line.sort = sortOf(line);
  all.sort((a, b) => badness(a) - badness(b) || size(b) - size(a) || natural(a.of, b.of));
  const columns = new Map<string, Column>();
  cases.forEach((one, c) => {
    const id = JSON.stringify(one.domains);
    let column = columns.get(id);
    if (!column) columns.set(id, (column = { domains: one.domains, name: one.domains.join(" and "), cases: [], isHurt: false }));
    column.cases.push(c);
    column.isHurt ||= all.some((line) => isBad(line.cells.get(c)));
  });
  const events = [...new Set(cases.map((one) => one.event))];
  return { columns: [...columns.values()], lines: all, events };
}

/** As strew names it: `deployment/web`, with its namespace if that is not `default`. */
export function ofRow(row: AuditRow): string {
  const name = `${row.kind.toLowerCase()}/${row.name}`;
  return row.namespace === "" || row.namespace === "default" ? name : `${row.namespace}/${name}`;
}

function nameOf(row: AuditRow): string {
  return row.namespace === "" || row.namespace === "default" ? row.name : `${row.namespace}/${row.name}`;
}

export function isBad(cell: Cell | undefined): boolean {
  return cell !== undefined && (cell.isHurt || cell.blocked !== undefined);
}

function sortOf(line: Line): Line["sort"] {
  const cells = [...line.cells.values()];
  if (cells.some(isBad)) return "hurt";
  const has = (verdict: string) => cells.some((cell) => cell.row?.verdict === verdict);
  return has("OUTAGE") ? "single" : has("UNKNOWN") ? "unknown" : "survives";
}

/** The index of the worst verdict on which a person should act; a drain that never ends counts as DEGRADED. */
export function badness(line: Line): number {
  let worst = VERDICTS.length;
  for (const cell of line.cells.values()) {
    if (cell.isHurt) worst = Math.min(worst, VERDICTS.indexOf(cell.row!.verdict));
    else if (cell.blocked !== undefined) worst = Math.min(worst, 2);
  }
  return worst;
}

function size(line: Line): number {
  return [...line.cells.values()].filter(isBad).length;
}

/** Pods without a workload that fare alike become one line: a cluster may have thousands. */
function fold(lines: Line[]): Line[] {
  const kept: Line[] = [], groups = new Map<string, Line>();
  for (const line of lines) {
    if (line.kind !== "Pod") { kept.push(line); continue; }
    const id = JSON.stringify([...line.cells].map(([c, cell]) => [c, cell.row?.verdict, cell.isHurt, cell.blocked, cell.row?.cause?.code]));
    const group = groups.get(id);
    if (group) group.names.push(line.name);
    else { groups.set(id, line); line.names.push(line.name); kept.push(line); }
  }
  return kept;
}
