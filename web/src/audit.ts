// The page of an audit: what is wrong, a matrix of verdicts, and for the chosen cell the way back, its cause and changes.

import { spoken } from "./clock.ts";
import { append, copyButton, counted, dotted, h, svg } from "./dom.ts";
import { badness, isBad, matrix, VERDICTS, type Cell, type Column, type Line, type Matrix } from "./matrix.ts";
import * as state from "./state.ts";
import type { AuditCase, AuditData, AuditRow, Fix } from "./types.ts";

/** With more sets of domains, those in which nothing is lost are one sentence. */
const COLUMNS_ALL = 4, COLUMNS_MAX = 12;
const WRONG_FIRST = 6, LINES_FIRST = 40, NAMES_MAX = 12;

/** What tests ask for. */
export interface Probe { matrix: Matrix }

export function audit(data: AuditData, root: HTMLElement): Probe {
  const { report } = data;
  const all = matrix(data);
  const hurt = all.lines.filter((line) => line.sort === "hurt");
  const shownColumns = columnsOf(all);
  const cells = new Map<string, HTMLElement>();
  const panel = h("section", { class: "card", "aria-label": "The chosen cell", "aria-live": "polite" });
  const table = h("div");
  const open = new Set<Line["sort"]>(hurt.length ? ["hurt"] : ["survives", "single", "unknown"]);
  let chosen = first(), isWhole = false;

  const wanted = state.read().cell;
  if (wanted !== undefined) chosen = find(wanted) ?? chosen;

  append(root, [header(data, all), h("main", {},
    h("div", { class: "grid audit" },
      h("div", {}, wrong(data, all, shownColumns, (at) => choose(at, true)), h("section", { class: "card", "aria-label": "Verdicts" },
        h("h2", {}, `What each ${listed(all.events, "or")} does, worst first`), table), rest()),
      h("div", {}, panel, fixes(data), headroom(all, report.cases))))]);
  drawTable();
  choose(chosen, false);
  document.body.dataset["ready"] = "true";
  addEventListener("hashchange", () => choose(find(state.read().cell ?? "") ?? chosen, false));
  return { matrix: all };

  function first(): string {
    const line = all.lines[0];
    const worst = line ? [...line.cells].filter(([, cell]) => isBad(cell) && (badness(line) === VERDICTS.indexOf(cell.row?.verdict ?? "") || cell.blocked)) : [];
    // Of the worst cells, the one with the fewest pods, as below what is wrong.
    const bad = worst.sort(([, a], [, b]) => (a.row?.ready ?? 0) - (b.row?.ready ?? 0))[0];
    return line ? id(line, bad?.[0] ?? [...line.cells.keys()][0] ?? 0) : "";
  }

  /** A cell as the address has it: event, domains, workload. */
  function id(line: Line, c: number): string {
    const one = report.cases[c]!;
    return `${one.event} ${one.domains.join(",")} ${line.of}`;
  }

  function find(text: string): string | undefined {
    for (const line of all.lines) for (const c of line.cells.keys()) if (id(line, c) === text) return text;
    return undefined;
  }

  function drawTable(): void {
    cells.clear();
    const lines = all.lines.filter((line) => open.has(line.sort));
    const shown = isWhole ? lines : lines.slice(0, LINES_FIRST);
    const grid = h("table", { class: "matrix", role: "grid", "aria-label": "verdicts of workloads by domain and event" });
    const top = h("tr", { role: "row" }, h("th", { role: "columnheader", rowspan: 2, scope: "col" }, "workload"));
    const below = h("tr", { role: "row" });
    for (const column of shownColumns) {
      top.append(h("th", { role: "columnheader", scope: "colgroup", class: "edge domain", colspan: column.cases.length }, column.name));
      column.cases.forEach((c, i) => below.append(h("th", { role: "columnheader", scope: "col", class: i ? "" : "edge" }, report.cases[c]!.event)));
    }
    const body = h("tbody", { role: "rowgroup" });
    for (const line of shown) {
      const name = h("th", { role: "rowheader", scope: "row" }, h("b", {}, line.names.length > 1 ? counted(line.names.length, "pod") : line.name), " ",
        h("span", { class: "dim" }, line.kind === "Pod" ? "without a workload" : line.kind));
      const row = h("tr", { role: "row" }, name);
      for (const column of shownColumns) {
        // Seen in narrow windows only, where there is no head of columns.
        row.append(h("td", { class: "narrow", role: "presentation", "aria-hidden": "true" }, column.name));
        column.cases.forEach((c, i) => row.append(cellOf(line, c, i === 0)));
      }
      body.append(row);
    }
    grid.append(h("thead", { role: "rowgroup" }, top, below), body);
    grid.addEventListener("keydown", keys);
    const children: HTMLElement[] = lines.length ? [h("div", { class: "scroll" }, grid)] : [];
    const left = lines.length - shown.length;
    if (left > 0) {
      children.push(h("p", { class: "foot" }, `${counted(left, "line")} more `,
        h("button", { type: "button", onclick: () => { isWhole = true; drawTable(); mark(); } }, "Show all")));
    }
    const well = all.columns.filter((column) => !shownColumns.includes(column));
    const quiet = well.filter((column) => !column.isHurt), cut = well.length - quiet.length;
    if (quiet.length) children.push(h("p", { class: "dim quiet" }, `${names(quiet.map((column) => column.name))}: nothing is lost`));
    if (cut) children.push(h("p", { class: "dim quiet" }, `and ${cut} more domains in which something is lost`));
    table.replaceChildren(...children, key(all), explained(all.events));
  }

  function cellOf(line: Line, c: number, isFirst: boolean): HTMLElement {
    const cell = line.cells.get(c);
    if (!cell) return h("td", { role: "gridcell", class: isFirst ? "edge" : "" });
    const [kind, text] = look(cell, line.names.length > 1);
    const label = `${line.names.length > 1 ? counted(line.names.length, "pod") : line.name}, ${titleOf(cell.case)}: ${words(cell)}`;
    const element = h("td", { role: "gridcell", class: isFirst ? "edge" : "", tabindex: -1, "data-cell": id(line, c), onclick: () => choose(id(line, c), true) },
      h("span", { class: `c ${kind}`, "aria-hidden": "true" }, text), h("span", { class: "sr" }, label), h("small", { class: "narrow", "aria-hidden": "true" }, cell.case.event));
    cells.set(id(line, c), element);
    return element;
  }

  /** Arrow keys choose the next cell; Home and End the ends of the row; Enter goes to what is said about it. */
  function keys(event: KeyboardEvent): void {
    const at = event.target as HTMLElement;
    const row = at.closest("tr");
    if (!row || !at.dataset["cell"]) return;
    const rows = [...row.parentElement!.children], r = rows.indexOf(row);
    const inRow = (row: Element | undefined) => [...(row?.querySelectorAll<HTMLElement>("td:not(.narrow)") ?? [])];
    const here = inRow(row), i = here.indexOf(at);
    const to: Record<string, HTMLElement | undefined> = {
      ArrowRight: here[i + 1], ArrowLeft: here[i - 1], ArrowDown: inRow(rows[r + 1])[i], ArrowUp: inRow(rows[r - 1])[i],
      Home: here[0], End: here[here.length - 1], PageUp: inRow(rows[0])[i], PageDown: inRow(rows[rows.length - 1])[i],
    };
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(at.dataset["cell"], true);
      return;
    }
    if (!(event.key in to)) return;
    event.preventDefault();
    const target = to[event.key];
    if (!target?.dataset["cell"]) return;
    choose(target.dataset["cell"], false);
    target.focus();
  }

  function choose(to: string, isAsked: boolean): void {
    chosen = to;
    const at = all.lines.flatMap((line) => [...line.cells].map(([c, cell]) => ({ line, c, cell }))).find(({ line, c }) => id(line, c) === to);
    if (at && !open.has(at.line.sort)) { open.add(at.line.sort); drawTable(); }
    mark();
    panel.replaceChildren(...(at ? detail(at.line, at.cell) : [h("p", { class: "dim" }, "Nothing was played.")]));
    state.write({ cell: to });
    const isNarrow = panel.getBoundingClientRect().top > innerHeight - 80;
    if (isAsked && isNarrow) panel.scrollIntoView({ block: "start" });
  }

  /** One cell is reached with Tab: the chosen one. */
  function mark(): void {
    for (const [other, element] of cells) {
      element.tabIndex = other === chosen ? 0 : -1;
      element.setAttribute("aria-selected", String(other === chosen));
    }
    if (!cells.has(chosen)) { const any = cells.values().next().value; if (any) any.tabIndex = 0; }
  }

  /** What has no place in the matrix until it is asked for: one line each, with numbers. */
  function rest(): HTMLElement | string {
    if (all.lines.every((line) => line.sort === "hurt")) return "";
    const box = h("section", { class: "card rest", "aria-label": "What survives" });
    const of = (sort: Line["sort"]) => all.lines.filter((line) => line.sort === sort);
    const rowsOf = (lines: Line[]) => lines.flatMap((line) => [...line.cells.values()].flatMap((cell) => cell.row ? [{ line, row: cell.row }] : []));
    const longest = (lines: Line[], seconds: (row: AuditRow) => number) => (
      rowsOf(lines).reduce<{ line: Line; row: AuditRow } | undefined>((best, one) => !best || seconds(one.row) > seconds(best.row) ? one : best, undefined));
    const every = all.events.map((event) => `every ${event}`).join(", ");
    const survivors = of("survives"), single = of("single"), unknown = of("unknown");
    if (survivors.length) {
      const most = longest(survivors, (row) => row.secondsShort);
      const short = most && most.row.secondsShort > 0 ? `; short of pods for ${spoken(most.row.secondsShort)} at most (${most.line.name})` : "";
      const n = pods(survivors);
      box.append(one("ok", "✓", `${counted(n, "workload")} ${n === 1 ? "survives" : "survive"} ${every}${short}`, "survives"));
    }
    if (single.length) {
      const most = longest(single, (row) => row.secondsWithoutReady)!;
      const n = pods(single);
      box.append(one("dim", "·", `${counted(n, "workload")} of one pod ${n === 1 ? "is" : "are"} out for up to ${spoken(most.row.secondsWithoutReady)}: ${names(single.flatMap((line) => line.names.length ? line.names : [line.name]))}`, "single"));
    }
    if (unknown.length) {
      box.append(one("dim", "?", `${counted(pods(unknown), "workload")} UNKNOWN, since no pod was ready before: ${names(unknown.map((line) => line.name))}`, "unknown"));
    }
    return box;
  }

  function one(kind: string, sign: string, text: string, sort: Line["sort"]): HTMLElement {
    const isOpen = () => open.has(sort);
    const button = h("button", { type: "button", class: "see", "aria-expanded": String(isOpen()) }, isOpen() ? "Hide" : "Show");
    button.addEventListener("click", () => {
      if (isOpen()) open.delete(sort); else open.add(sort);
      button.textContent = isOpen() ? "Hide" : "Show";
      button.setAttribute("aria-expanded", String(isOpen()));
      drawTable();
      mark();
    });
    return h("p", {}, h("span", { class: `tag ${kind}`, "aria-hidden": "true" }, `${sign} `), `${text} `, button);
  }
}

/** The columns that are shown: of many, those in which something is lost. */
function columnsOf(all: Matrix): Column[] {
  if (all.columns.length <= COLUMNS_ALL) return all.columns;
  const hurt = all.columns.filter((column) => column.isHurt);
  return (hurt.length ? hurt : all.columns).slice(0, COLUMNS_MAX);
}

/** Workloads, and pods without one, of these lines. */
function pods(lines: Line[]): number {
  return lines.reduce((n, line) => n + Math.max(1, line.names.length), 0);
}

function names(all: string[]): string {
  return all.length > NAMES_MAX ? `${all.slice(0, NAMES_MAX).join(", ")} and ${all.length - NAMES_MAX} more` : all.join(", ");
}

function listed(all: string[], word: string): string {
  return all.length > 1 ? `${all.slice(0, -1).join(", ")} ${word} ${all[all.length - 1]}` : all[0] ?? "";
}

function titleOf(one: AuditCase): string {
  return `${one.event} of ${one.domains.join(" and ")}`;
}

/** `5m48s` */
function brief(seconds: number): string {
  return seconds < 1 ? "<1s" : spoken(seconds).replaceAll(" ", "");
}

/** How a cell looks: a class, and a sign with numbers. */
function look({ row, blocked, isHurt }: Cell, isFolded: boolean): [string, string] {
  const left = row && !isFolded ? ` ${row.ready}/${row.wanted}` : "";
  switch (row?.verdict) {
    case "LOST": return ["lost", `✗${blocked ? " stuck" : left}`];
    case "OUTAGE": return [isHurt ? "outage" : "single", blocked ? "! stuck" : `${isHurt ? "!" : "·"} ${brief(row.secondsWithoutReady)}`];
    case "DEGRADED": return ["degraded", blocked ? "! stuck" : `!${left}`];
    case "SURVIVES": return blocked ? ["degraded", "! stuck"] : ["survives", "✓"];
    default: return blocked ? ["degraded", "! stuck"] : ["unknown", "?"];
  }
}

function words({ row, blocked }: Cell): string {
  const verdict = row ? `${row.verdict}, ${row.sum}` : "not judged";
  return blocked ? `${verdict}; its drain never ends` : verdict;
}

function header(data: AuditData, all: Matrix): HTMLElement {
  const { report } = data;
  const nodes = report.domains.reduce((n, domain) => n + domain.nodes, 0) + report.nodesWithoutKey;
  const title = `audit of ${report.cluster ?? (data.files.map((file) => file.replace(/.*\//, "")).join(", ") || "the cluster")}`;
  const hurt = all.lines.filter((line) => line.sort === "hurt");
  const counts = VERDICTS.slice(0, 3).map((verdict, v) => {
    const its = hurt.filter((line) => [...line.cells.values()].some((cell) => cell.isHurt && cell.row?.verdict === verdict) && badness(line) === v);
    return [pods(its), verdict] as const;
  }).filter(([n]) => n > 0).map(([n, verdict]) => `${n.toLocaleString("en-US")} ${verdict}`);
  const stuck = hurt.filter((line) => [...line.cells.values()].some((cell) => cell.blocked)).length;
  if (stuck) counts.push(`${counted(stuck, "drain never ends", "drains never end")}`);
  const isUnknown = !all.lines.some((line) => [...line.cells.values()].some((cell) => cell.row && cell.row.verdict !== "UNKNOWN"));
  const kind = data.fails ? "bad" : counts.length ? "warn" : "ok";
  const sign = { bad: "✗", warn: "!", ok: "✓" }[kind];
  const text = counts.length ? counts.join(", ") : isUnknown ? "nothing could be judged" : "nothing is lost";
  document.title = `${sign} ${title}`;
  const facts = [
    `${counted(nodes, "node")} in ${counted(report.domains.length, "domain")} by ${report.by}`,
    counted(report.workloads, "workload"), (report.seeds ?? 1) > 1 ? `${report.seeds} seeds` : `seed ${report.seed}`,
  ];
  if (report.nodesWithoutKey) facts.splice(1, 0, `${counted(report.nodesWithoutKey, "node")} without the key`);
  return h("header", {}, h("h1", {}, title), h("span", { class: "dim" }, dotted(facts)), h("span", { class: `verdict ${kind}` }, `${sign} ${text}`));
}

function wrong(data: AuditData, all: Matrix, columns: Column[], go: (cell: string) => void): HTMLElement {
  const box = h("section", { class: "card", "aria-label": "What is wrong" }, h("h2", {}, "What is wrong"));
  const hurt = all.lines.filter((line) => line.sort === "hurt");
  const items = hurt.map((line) => item(data, line, go));
  box.append(...items.slice(0, WRONG_FIRST));
  const more = items.slice(WRONG_FIRST);
  if (more.length) box.append(h("details", {}, h("summary", {}, `${counted(more.length, "workload")} more`), ...more));
  for (const budget of data.report.stuckBudgets ?? []) {
    const name = budget.namespace === "default" ? budget.name : `${budget.namespace}/${budget.name}`;
    box.append(finding("warn", h("b", {}, `budget ${name}`), ` allows no eviction though all its pods are healthy: it asks for ${budget.asks} of ${budget.pods}`));
  }
  if (!hurt.length) {
    const survive = pods(all.lines.filter((line) => line.sort === "survives"));
    const n = data.report.workloads;
    box.append(h("p", { class: "well" }, survive || n ? h("b", { class: "tag ok" }, "✓ Nothing is lost: ") : "No workload was judged. ",
      `${survive} of ${counted(n, "workload")} ${survive === 1 ? "survives" : "survive"} each ${listed(all.events, "and")} of ${names(columns.map((column) => column.name))}.`));
  }
  return box;
}

function finding(kind: "bad" | "warn", ...children: (Node | string)[]): HTMLElement {
  const [sign, word] = kind === "bad" ? ["✗", "error"] : ["!", "warning"];
  return h("div", { class: "finding" }, h("span", { class: `tag ${kind}`, role: "img", "aria-label": word }, sign), h("div", {}, ...children));
}

/** What is wrong with a workload: its worst verdict, where, and why. */
function item(data: AuditData, line: Line, go: (cell: string) => void): HTMLElement {
  const worst = badness(line);
  const cells = [...line.cells.values()];
  const bad = cells.filter((cell) => cell.isHurt && VERDICTS.indexOf(cell.row!.verdict) === worst);
  const fewest = bad.reduce<Cell | undefined>((least, cell) => !least || cell.row!.ready < least.row!.ready ? cell : least, undefined);
  const first = fewest ?? cells.find((cell) => cell.blocked)!;
  const name = line.names.length > 1 ? counted(line.names.length, "pod") : line.name;
  const kind = worst === 0 ? "bad" : "warn";
  const children: (Node | string)[] = [h("b", {}, name), " ", h("span", { class: "dim" }, line.kind === "Pod" ? "without a workload" : line.kind), " "];
  if (bad.length) {
    const isSame = bad.every((cell) => cell.row!.ready === first.row!.ready);
    const sum = line.names.length > 1 ? "" : `: ${isSame ? "" : `at worst, by ${titleOf(first.case)}, `}${first.row!.sum}`;
    children.push(h("span", { class: `tag ${kind}` }, VERDICTS[worst]!), ` by ${places(bad, data.report.seeds ?? 1)}${sum} `);
  }
  const domains = first.case.domains.join(",");
  const show = h("button", { type: "button", class: "see", "aria-label": `Show ${name}, ${titleOf(first.case)}`, onclick: () => go(`${first.case.event} ${domains} ${line.of}`) }, "Show");
  const causes = new Map<string, { text: string; events: Set<string> }>();
  for (const cell of [first, ...bad]) {
    const cause = cell.row?.cause;
    if (!cause || !cell.isHurt) continue;
    const known = causes.get(cause.code);
    if (known) known.events.add(cell.case.event); else causes.set(cause.code, { text: cause.text, events: new Set([cell.case.event]) });
  }
  for (const { text, events } of causes.values()) children.push(h("p", { class: "fix" }, causes.size > 1 ? `${[...events].join(", ")}: ${text}` : text));
  const blocked = cells.filter((cell) => cell.blocked);
  if (blocked.length) children.push(h("p", { class: "fix" }, `its drain never ends in ${names(blocked.map((cell) => cell.case.domains.join(" and ")))}: ${blocked[0]!.blocked}`));
  for (const fix of data.report.fixes ?? []) if (fix.of === line.of) children.push(h("p", { class: "fix" }, "fix: ", h("code", {}, fix.change), ` (played: ${outcome(fix)})`));
  const found = finding(kind, ...children);
  found.append(show);
  return found;
}

/** `loss, drain of zone-a, zone-b; shift (some seeds) of zone-c` */
function places(cells: Cell[], seeds: number): string {
  const byDomains = new Map<string, string[]>();
  for (const cell of cells) {
    const domains = cell.case.domains.join(" and ");
    const event = `${cell.case.event}${(cell.row?.seeds ?? seeds) < seeds ? " (some seeds)" : ""}`;
    const events = byDomains.get(domains);
    if (events) events.push(event); else byDomains.set(domains, [event]);
  }
  const byEvents = new Map<string, string[]>();
  for (const [domains, events] of byDomains) {
    const text = events.join(", ");
    const all = byEvents.get(text);
    if (all) all.push(domains); else byEvents.set(text, [domains]);
  }
  return [...byEvents].map(([events, domains]) => `${events} of ${names(domains)}`).join("; ");
}

function outcome(fix: Fix): string {
  return fix.from === "BLOCKED" && fix.to === "SURVIVES" ? "the drain ends" : `${fix.from} becomes ${fix.to}`;
}

/** The chosen cell: the way back, the numbers, the cause. */
function detail(line: Line, cell: Cell): Node[] {
  const { row, blocked } = cell, one = cell.case;
  const name = line.names.length > 1 ? `${counted(line.names.length, "pod")} without a workload` : line.name;
  const found: Node[] = [h("h2", {}, `${name}, ${titleOf(one)}`)];
  if (!row) return [...found, h("p", {}, "It was not judged.")];
  const kind = cell.isHurt ? (row.verdict === "LOST" || row.verdict === "OUTAGE" ? "bad" : "warn") : row.verdict === "SURVIVES" ? "ok" : "dim";
  const each = line.names.length > 1 ? "each " : "";
  found.push(h("p", {}, h("b", { class: `tag ${kind}` }, row.verdict), `: ${each}${row.sum}`));
  if (row.cause) found.push(h("p", { class: "cause" }, row.cause.text));
  if (blocked) found.push(h("p", { class: "cause" }, h("b", { class: "tag warn" }, "The drain never ends: "), blocked));
  found.push(wayBack(row, one));
  const rows: [string, Node | string][] = [
    ["ready before", `${row.before} of ${row.wanted}`],
    ["at once", `${row.before} − ${row.before - row.atOnce} = ${row.atOnce}`],
    ["fewest on the way", String(row.fewest)],
    ["at rest", `${row.ready} of ${row.wanted}${row.ready < row.wanted ? `, ${row.wanted - row.ready} missing` : ""}`],
  ];
  if (row.secondsShort && row.ready >= row.wanted) rows.push(["fewer than it asks for", `for ${spoken(row.secondsShort)}`]);
  if (row.secondsWithoutReady && row.ready) rows.push(["none ready", `for ${spoken(row.secondsWithoutReady)}`]);
  for (const budget of row.budgets ?? []) rows.push([`budget ${budget.name}`, `asks for ${budget.asks}, ${budget.healthy} healthy at rest${budget.healthy < budget.asks ? ": too few" : ""}`]);
  rows.push(["room elsewhere", roomText(one)]);
  const empty = one.services.filter((service) => service.atOnce === 0);
  if (empty.length) rows.push(["Services without an endpoint at once", names(empty.map(serviceText))]);
  if (!one.atRest) rows.push(["the end", `not at rest after ${spoken(one.seconds)}: numbers at rest are those of that moment`]);
  if (line.names.length > 1) rows.push(["pods", names(line.names)]);
  if (row.cause) rows.push(["cause code", h("code", {}, row.cause.code)]);
  found.push(h("table", { class: "plain numbers" }, h("tbody", {}, ...rows.map(([label, value]) => h("tr", {}, h("th", { scope: "row", class: "dim" }, label), h("td", {}, value))))));
  return found;
}

/** The name of a Service, and the workloads that call it. */
function serviceText(service: AuditCase["services"][number]): string {
  const name = service.namespace === "default" ? service.name : `${service.namespace}/${service.name}`;
  return service.callers?.length ? `${name} (called by ${service.callers.join(", ")})` : name;
}

/** Ready pods over time, as a line and in words. */
function wayBack(row: AuditRow, one: AuditCase): HTMLElement {
  const points = row.readyOverTime ?? [];
  if (points.length < 2) return h("p", { class: "dim wayback" }, `${row.ready} of ${row.wanted} ready from the ${one.event} on, without a change.`);
  const W = 400, H = 60, top = Math.max(1, row.wanted, ...points.map((point) => point.ready));
  const last = points[points.length - 1]!.second, end = Math.max(10, last * 1.15);
  const lead = 24, x = (second: number) => (lead + (second / end) * (W - lead)).toFixed(1), y = (n: number) => (4 + (1 - n / top) * (H - 8)).toFixed(1);
  const path = points.slice(1).map((point) => ` H${x(point.second)} V${y(point.ready)}`).join("");
  const picture = svg("svg", { viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("line", { class: "zero", x1: 0, x2: W, y1: y(0), y2: y(0) }), svg("line", { class: "wanted", x1: 0, x2: W, y1: y(row.wanted), y2: y(row.wanted) }),
    svg("line", { class: "begin", x1: lead, x2: lead, y1: 0, y2: H }),
    svg("path", { class: row.verdict === "LOST" || row.verdict === "OUTAGE" ? "bad" : "", d: `M0 ${y(points[0]!.ready)}${path} H${W}` }));
  const told = story(row);
  const words = told.map(([second, ready], i) => `${i ? `${ready} after ${spoken(second)}` : second === 0 ? `${ready} at once` : `${ready} after ${spoken(second)}`}`);
  const text = `${points[0]!.ready} before, ${words.join(", ")}`;
  const stays = row.ready < row.wanted ? `; stays at ${row.ready} of ${row.wanted}` : "";
  return h("figure", { class: "wayback" }, h("figcaption", { class: "sr" }, `Ready pods over time: ${text}${stays}.`),
    h("div", { class: "frame", "aria-hidden": "true" }, h("span", { class: "max" }, `${top}`), h("span", { class: "min" }, "0"), picture),
    h("div", { class: "axis dim small", "aria-hidden": "true" }, h("span", {}, one.event), h("span", {}, spoken(end))),
    h("p", { class: "small", "aria-hidden": "true" }, `Ready: ${text}${stays}.`));
}

/** The turns of the way back: the instant of the event, the fewest, the last. */
function story(row: AuditRow): [number, number][] {
  const points = row.readyOverTime!.slice(1), found: [number, number][] = [];
  const atOnce = points.filter((point) => point.second === 0).pop();
  if (atOnce) found.push([0, atOnce.ready]);
  const lowest = points.reduce((least, point) => point.ready < least.ready ? point : least);
  if (lowest.second > 0) found.push([lowest.second, lowest.ready]);
  const last = points[points.length - 1]!;
  if (last.second > 0 && last !== lowest) found.push([last.second, last.ready]);
  return found;
}

function cpu(milli: number): string {
  return (Math.round(milli / (milli < 10000 ? 1 : 100)) / (milli < 10000 ? 1000 : 10)).toLocaleString("en-US", { maximumFractionDigits: 3 });
}

function bytes(n: number): string {
  const units: [number, string][] = [[2 ** 40, "Ti"], [2 ** 30, "Gi"], [2 ** 20, "Mi"], [2 ** 10, "Ki"]];
  const [size, unit] = units.find(([size]) => n >= size) ?? [1, ""];
  return `${(Math.round((n / size) * 10) / 10).toLocaleString("en-US")}${unit}`;
}

function roomText({ headroom: room }: AuditCase): string {
  return `${cpu(room.needsMilliCpu)} CPU and ${bytes(room.needsBytes)} needed, ${cpu(room.freeMilliCpu)} CPU and ${bytes(room.freeBytes)} free`;
}

/** The changes that help, each with its patch. */
function fixes(data: AuditData): HTMLElement | null {
  const all = data.report.fixes ?? [];
  if (!all.length) return null;
  const list = h("ol", { class: "fixes" });
  all.forEach((fix, i) => {
    const patch = data.patches[i] ?? "";
    list.append(h("li", {}, h("b", {}, fix.of), ": ", h("code", {}, fix.change), `: ${outcome(fix)} `, fix.patches.length > 0 && copyButton(patch, "Copy patch")));
  });
  const how = all.length === 1 ? "played again" : "played alone, and all together";
  return h("section", { class: "card", "aria-label": "Smallest changes" }, h("h2", {}, `Smallest changes, ${how}`), list);
}

/** What the pods of each domain need elsewhere, and what is free there. */
function headroom(all: Matrix, cases: AuditCase[]): HTMLElement {
  const gauge = (label: string, needs: number, free: number, text: (n: number) => string) => {
    const top = Math.max(needs, free, 1), part = (n: number) => `${((n / top) * 100).toFixed(1)}%`;
    const isShort = needs > free;
    return h("div", { class: isShort ? "gauge short" : "gauge" },
      h("span", { class: "track", "aria-hidden": "true" }, h("i", { class: "need", "style:width": part(needs) }), h("i", { class: "free", "style:left": part(free) })),
      h("span", { class: "num" }, `${label}: ${text(needs)} needed, ${text(free)} free`, isShort && h("b", { class: "tag bad" }, ` ✗ ${text(needs - free)} short`)));
  };
  const tight = (column: Column) => {
    const { needsMilliCpu, freeMilliCpu, needsBytes, freeBytes } = cases[column.cases[0]!]!.headroom;
    return Math.max(needsMilliCpu / Math.max(1, freeMilliCpu), needsBytes / Math.max(1, freeBytes));
  };
  const columns = [...all.columns].sort((a, b) => tight(b) - tight(a));
  const entry = (column: Column) => {
    const { headroom: room } = cases[column.cases[0]!]!;
    return h("li", {}, h("h3", {}, `without ${column.name}`), gauge("CPU", room.needsMilliCpu, room.freeMilliCpu, cpu), gauge("memory", room.needsBytes, room.freeBytes, bytes));
  };
  const box = h("section", { class: "card", "aria-label": "Headroom" }, h("h2", {}, "Headroom by domain, tightest first"),
    h("ul", { class: "rooms" }, ...columns.slice(0, 6).map(entry)));
  if (columns.length > 6) box.append(h("details", {}, h("summary", {}, `${columns.length - 6} more`), h("ul", { class: "rooms" }, ...columns.slice(6, 200).map(entry))));
  box.append(h("p", { class: "dim small" }, "Bar: what its pods request, DaemonSets left out. Line: what is free on the other nodes that take pods. Sums that suffice do not mean that each pod finds a node."));
  return box;
}

function key(all: Matrix): HTMLElement {
  const seen = new Set(all.lines.flatMap((line) => [...line.cells.values()].map((cell) => look(cell, false)[0])));
  const isStuck = all.lines.some((line) => [...line.cells.values()].some((cell) => cell.blocked));
  const entries: [string, string, string][] = [
    ["lost", "✗ 0/3", "LOST: none ready at rest, or fewer than a budget asks for"], ["outage", "! 5m48s", "OUTAGE: none ready for so long"],
    ["degraded", "! 6/8", "DEGRADED: ready of wanted, at rest"], ["single", "· 48s", "OUTAGE of what asks for one pod"],
    ["survives", "✓", "SURVIVES"], ["unknown", "?", "UNKNOWN: none was ready before"],
  ];
  const box = h("div", { class: "key" });
  for (const [kind, text, words] of entries) if (seen.has(kind)) box.append(h("span", {}, h("span", { class: `c ${kind}`, "aria-hidden": "true" }, text), words));
  if (isStuck) box.append(h("span", {}, h("span", { class: "c degraded", "aria-hidden": "true" }, "! stuck"), "the drain never ends"));
  return box;
}

const EVENTS: Record<string, string> = {
  loss: "the nodes stop; pods are evicted and made again elsewhere",
  shift: "the nodes are cordoned and their pods out of all endpoints, while they run on; then every workload is restarted",
  drain: "the nodes are drained one by one by evictions, which budgets may refuse",
};

function explained(events: string[]): HTMLElement {
  return h("details", {}, h("summary", {}, "What is played, and keys"),
    ...events.map((event) => h("p", { class: "dim" }, h("b", {}, event), `: ${EVENTS[event] ?? ""}`)),
    h("p", { class: "dim" }, "Arrow keys go from cell to cell, Home and End to the ends of a row, Page Up and Page Down to the ends of a column, Enter to what is said about a cell."));
}
