// Skew bars: one row a constraint, a bar a domain, a line at the minimum and one at minimum + maxSkew.

import { counted, grouped, h, natural } from "./dom.ts";
import type { Frame, Pod, Run } from "./run.ts";
import type { Spread } from "./types.ts";

/** With more domains, equal ones are one bar. */
const DOMAINS_MAX = 8;
const HEIGHT = 44;

interface Bar {
  label: string;
  count: number;
  /** Of the count, pods of revisions before the newest. */
  old: number;
  /** Pods that are terminating, which do not count. */
  leaving: number;
  counts: boolean;
  note?: string | undefined;
  /** The lines of a bar that has its own ones. */
  least?: number | undefined;
  limit?: number | undefined;
}

/** A bar of several equal domains. */
type Folded = Bar & { n?: number };

export interface Row {
  by: string;
  spread?: Spread;
  counts: Map<string, number>;
  skew: number;
  /** True: counted as the constraint counts; false: the workload's own pods, while a step goes on. */
  isConstraints: boolean;
}

/** The rows of a workload at a moment: of the report at the end of a step, of the series before. */
export function rows(run: Run, of: string, frame: Frame): Row[] {
  const rest = run.workload(of, run.atRest(frame));
  if (rest) return rest.spread.map(rowOf);
  const known = run.constraints(of, frame);
  const keys = known.length ? known.map((spread) => spread.by) : run.keys;
  const found: Row[] = [];
  keys.forEach((by, i) => {
    const own = run.spread(of, by, frame);
    if (own) found.push({ by, spread: known[i], counts: own.counts, skew: own.skew, isConstraints: false });
  });
  return found;
}

/** A constraint with its counts. */
export function rowOf(spread: Spread): Row {
  return { by: spread.by, spread, counts: new Map(Object.entries(spread.counts)), skew: spread.skew, isConstraints: true };
}

/** One row: bars, and their numbers in words. */
export function draw(row: Row, pods: Pod[], domainOf: (node: string, by: string) => string | undefined, all: string[]): HTMLElement {
  const { spread, skew } = row;
  const constraint = spread?.constraint ?? undefined;
  const groups = spread?.groups;
  const most = groups?.[0]?.[0] ?? Math.max(0, ...row.counts.values());
  // With fewer domains than minDomains, the scheduler takes 0 for the minimum.
  const isFew = spread !== undefined && (constraint?.minDomains ?? 0) > spread.domains;
  const least = isFew ? 0 : most - skew;
  const limit = constraint && !constraint.withoutEffect ? least + constraint.maxSkew : undefined;
  const bars = groups ? first(groups.map(([count, n]) => ({ label: counted(n, "domain"), count, old: 0, leaving: 0, counts: true, n }))) : fold(barsOf(row, pods, domainOf, all));
  const top = Math.max(1, limit ?? 0, ...bars.map((bar) => bar.count + ((bar.n ?? 1) === 1 ? bar.leaving : 0)));
  const isOver = constraint !== undefined && (skew > constraint.maxSkew || (isFew && limit !== undefined && most > limit));
  const isHard = constraint?.whenUnsatisfiable === "DoNotSchedule";
  const chart = h("ul", { class: isHard ? "bars hard" : "bars", "aria-label": `pods by ${row.by}` });
  for (const bar of bars) chart.append(column(bar, top, least, limit));
  const box = h("div", { class: "constraint" }, chart, words(row, least, limit, isOver, isHard, bars));
  if (spread?.warning) box.append(h("p", { class: "warn" }, `! ${spread.warning}`));
  return box;
}

/** A bar with a note below, and with lines of its own. */
export interface Plain { label: string; count: number; note?: string; least?: number | undefined; limit?: number | undefined }

/** Bars that are no row of one constraint: clusters of a Placement, subsets. */
export function plain(by: string, counts: Plain[], isHard = false): HTMLElement {
  const bars = fold(counts.map((one) => ({ ...one, old: 0, leaving: 0, counts: true })));
  const top = Math.max(1, ...bars.map((bar) => Math.max(bar.count, bar.limit ?? 0)));
  return h("ul", { class: isHard ? "bars hard" : "bars", "aria-label": by }, ...bars.map((bar) => column(bar, top, bar.least, bar.limit)));
}

function barsOf(row: Row, pods: Pod[], domainOf: (node: string, by: string) => string | undefined, all: string[]): Bar[] {
  const leaving = new Map<string, number>(), byOwner = new Map<string, Map<string, number>>();
  let newest = "";
  for (const pod of pods) {
    const domain = pod.state.node && domainOf(pod.state.node, row.by);
    if (pod.owner > "" && !newest) newest = pod.owner;
    if (!domain || pod.state.isFinished) continue;
    if (pod.state.isTerminating) { leaving.set(domain, (leaving.get(domain) ?? 0) + 1); continue; }
    const owners = byOwner.get(domain) ?? new Map<string, number>();
    owners.set(pod.owner, (owners.get(pod.owner) ?? 0) + 1);
    byOwner.set(domain, owners);
  }
  // The pods of the log come in the order of their creation: the last one is of the newest revision.
  newest = pods[pods.length - 1]?.owner ?? newest;
  const isWhole = row.spread === undefined || row.counts.size >= row.spread.domains;
  const domains = new Set([...row.counts.keys(), ...leaving.keys(), ...(isWhole ? all : [])]);
  // Many are folded by their counts, so that their order is not seen.
  const sorted = domains.size > DOMAINS_MAX ? [...domains] : [...domains].sort(natural);
  return sorted.map((label) => {
    const count = row.counts.get(label) ?? 0, owners = byOwner.get(label);
    const total = owners ? [...owners.values()].reduce((a, b) => a + b, 0) : 0;
    const old = total === count && owners ? total - (owners.get(newest) ?? 0) : 0;
    return { label, count, old, leaving: leaving.get(label) ?? 0, counts: row.counts.has(label) || !isWhole };
  });
}

/** Of many domains, equal ones as one bar: `5 domains`. */
function fold(bars: Bar[]): Folded[] {
  if (bars.length <= DOMAINS_MAX) return bars;
  const groups = new Map<string, Bar & { n: number }>();
  for (const bar of bars) {
    const id = bar.counts ? `${bar.count} ${bar.least} ${bar.limit}` : "out";
    const group = groups.get(id);
    if (group) { group.n += 1; group.leaving += bar.leaving; }
    else groups.set(id, { ...bar, old: 0, n: 1 });
  }
  const found = [...groups.values()].sort((a, b) => b.count - a.count);
  for (const group of found) if (group.n > 1) Object.assign(group, { label: counted(group.n, "domain"), note: undefined });
  return first(found);
}

/** The first bars, and the others as one. */
function first(found: Folded[]): Folded[] {
  const shown = found.slice(0, DOMAINS_MAX);
  const rest = found.slice(DOMAINS_MAX).reduce((n, group) => n + (group.n ?? 1), 0);
  if (rest) shown.push({ label: `${counted(rest, "domain")} with fewer`, count: found[DOMAINS_MAX]!.count, old: 0, leaving: 0, counts: true, n: rest });
  return shown;
}

function column(bar: Folded, top: number, least?: number, limit?: number): HTMLElement {
  const y = (n: number) => `${(n / top) * HEIGHT}px`;
  const plot = h("div", { class: "plot", "aria-hidden": "true" });
  if (bar.counts) {
    if (bar.count - bar.old) plot.append(h("i", { class: "bar", "style:height": y(bar.count - bar.old) }));
    if (bar.old) plot.append(h("i", { class: "bar old", "style:height": y(bar.old), "style:bottom": y(bar.count - bar.old) }));
  }
  if (bar.leaving && (bar.n ?? 1) === 1) plot.append(h("i", { class: "bar out", "style:height": y(bar.leaving), "style:bottom": y(bar.count) }));
  if (!bar.counts && !bar.leaving) plot.append(h("i", { class: "bar out", "style:height": "100%" }));
  if (least !== undefined && bar.counts) plot.append(h("i", { class: "line", "style:bottom": y(least) }));
  if (limit !== undefined && bar.counts) plot.append(h("i", { class: "line limit", "style:bottom": y(limit) }));
  const each = bar.n !== undefined && bar.n > 1 ? " each" : "";
  const over = limit !== undefined && bar.count > limit;
  const number = bar.counts ? `${grouped(bar.count)}${each}` : "-";
  return h("li", { class: over ? "over" : "" }, plot,
    h("span", { class: "n" }, number, over && h("span", { class: "sr" }, " over the limit")),
    h("span", { class: "name" }, bar.label || "no label"),
    bar.leaving > 0 && h("span", { class: "note" }, `${bar.leaving} terminating`),
    bar.note !== undefined && h("span", { class: "note" }, bar.note),
    !bar.counts && h("span", { class: "note" }, "does not count"));
}

function words(row: Row, least: number, limit: number | undefined, isOver: boolean, isHard: boolean, bars: Bar[]): HTMLElement {
  const { spread, skew } = row;
  const constraint = spread?.constraint;
  const parts: (HTMLElement | string)[] = [];
  const by = h("b", {}, short(row.by));
  if (!constraint) parts.push(by, `: skew ${skew}; no constraint`);
  else {
    const source = constraint.source === "clusterDefault" ? "cluster default, " : "";
    parts.push(by, `: ${source}${isHard ? "hard" : "soft"}, maxSkew ${constraint.maxSkew}`);
    if (constraint.minDomains) parts.push(`, minDomains ${constraint.minDomains}`);
    const verdict = isOver ? `skew ${skew}, over maxSkew ${constraint.maxSkew}` : `skew ${skew}, within maxSkew`;
    parts.push(". ", h("span", { class: isOver ? (isHard ? "tag bad" : "tag warn") : "tag ok" }, `${isOver ? (isHard ? "✗" : "!") : "✓"} ${verdict}`));
    if (limit !== undefined) {
      const isFew = (constraint.minDomains ?? 0) > spread.domains;
      const minimum = isFew ? `the minimum counts as 0 with ${counted(spread.domains, "domain")}` : `minimum ${least}`;
      parts.push(`: ${minimum}, a domain ${isHard ? "may" : "should"} have ${limit} at most`);
    }
    if (constraint.withoutEffect) parts.push("; the scheduler's profile does not evaluate it");
  }
  if (!row.isConstraints) parts.push("; counted are the workload's own pods, all revisions");
  else if (spread?.others) parts.push(`; ${counted(spread.others, "pod")} of other workloads count too`);
  else if (spread?.own && spread.own.skew !== skew) parts.push(`; all revisions together: skew ${spread.own.skew}`);
  if (bars.some((bar) => bar.old)) parts.push("; lighter: older revisions");
  if (bars.some((bar) => bar.leaving)) parts.push("; terminating pods do not count");
  if (bars.some((bar) => !bar.counts)) parts.push(`; a domain does not count if ${constraint ? "the constraint leaves out its nodes" : "the pods may not go to its nodes"}`);
  return h("p", { class: "words" }, ...parts);
}

/** `zone` of `topology.kubernetes.io/zone`. */
export function short(key: string): string {
  const known: Record<string, string> = { "kubernetes.io/hostname": "node" };
  return known[key] ?? key.slice(key.lastIndexOf("/") + 1);
}
