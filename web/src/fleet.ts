// Placements with their clusters: the page of `strew place --html`, and a part of the page of a hub.

import { plain, short } from "./bars.ts";
import { append, counted, dotted, h, keep, natural } from "./dom.ts";
import { fewWorkloads } from "./list.ts";
import * as map from "./map.ts";
import type { NodeState, Pod } from "./run.ts";
import * as state from "./state.ts";
import type { ClusterRow, Condition, Finding, FleetData, Moved, PlacementRow, Term, Topology } from "./types.ts";
import { finding, listed } from "./wrong.ts";

const NAMES_MAX = 12;

/** Placements and clusters by name: `shop/web`, `east-1`. */
export interface Fleet { placements: Map<string, PlacementRow>; clusters: Map<string, ClusterRow>; findings: Finding[] }

export function read(rows: Iterable<[string, unknown]>): Fleet {
  const found: Fleet = { placements: new Map(), clusters: new Map(), findings: [] };
  for (const [key, row] of rows) {
    const space = key.indexOf(" "), kind = key.slice(0, space), name = key.slice(space + 1);
    if (kind === "placement") found.placements.set(name, row as PlacementRow);
    if (kind === "cluster") found.clusters.set(name, row as ClusterRow);
    if (kind === "finding") found.findings.push(row as Finding);
  }
  return found;
}

const RANKS = ["misconfigured", "short", "uneven"];
const rank = (row: PlacementRow): number => (RANKS.indexOf(row.state) + RANKS.length + 1) % (RANKS.length + 1);
export const isTrouble = (row: PlacementRow): boolean => RANKS.includes(row.state);

/** Placements in a list and on a map of the clusters, with one that is chosen. */
export interface Part {
  list: HTMLElement;
  place: HTMLElement;
  show(fleet: Fleet): void;
  choose(of: string): void;
  chosen(): string;
  levels(): string[];
}

export function part(changed: () => void): Part {
  const asked = state.read();
  let fleet: Fleet = read([]), chosen = asked.placement ?? "", levels = asked.boxes?.split(",").filter(Boolean);
  const title = h("h2"), items = h("div"), where = h("div"), legend = h("div"), twin = h("div");
  const list = h("section", { class: "card", id: "placements", "aria-label": "Placements" }, title, items);
  const place = h("section", { class: "card", "aria-label": "Where its clusters are" }, where, legend,
    h("details", { ontoggle: () => drawTwin() }, h("summary", {}, "The same as a table"), twin));
  const few = fewWorkloads(() => drawList(), "Placement");
  const order = () => [...fleet.placements.keys()].sort((a, b) => rank(fleet.placements.get(a)!) - rank(fleet.placements.get(b)!) || natural(a, b));

  function choose(of: string): void {
    chosen = of;
    levels = undefined;
    draw();
    changed();
  }
  function drawList(): void {
    title.textContent = counted(fleet.placements.size, "Placement") + (fleet.placements.size > 1 ? ", worst first" : "");
    keep(items, () => few(items, order(), chosen, (of) => article(of, fleet.placements.get(of)!, of === chosen, choose)));
  }
  function draw(): void {
    if (!fleet.placements.has(chosen)) chosen = order()[0] ?? "";
    levels ??= levelsOf(fleet, chosen);
    drawList();
    const { nodes, pods } = onMap(fleet);
    where.replaceChildren(h("h2", {}, chosen ? `Clusters that ${nameOf(chosen)} chose` : "Clusters"), map.draw(nodes, pods, chosen, levels, new Map(), map.CLUSTERS));
    map.paint(where);
    const keys = [...new Set(nodes.flatMap((node) => Object.keys(node.labels)))].sort();
    legend.replaceChildren(map.legend(levels, keys, (meant) => { levels = meant; draw(); changed(); }, map.CLUSTERS));
    drawTwin();
  }
  function drawTwin(): void {
    const isOpen = (twin.parentElement as HTMLDetailsElement | null)?.open;
    const { nodes, pods } = isOpen ? onMap(fleet) : { nodes: [], pods: [] };
    keep(twin, () => twin.replaceChildren(isOpen ? map.table(nodes, pods, chosen, levels ?? [], map.CLUSTERS) : ""));
  }
  addEventListener("resize", () => map.paint(where));
  for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) matchMedia(query).addEventListener("change", () => map.paint(where));
  return { list, place, choose, chosen: () => chosen, levels: () => levels ?? [], show: (now) => { fleet = now; draw(); } };
}

/** The labels that nest the clusters: those by which the Placement is spread, otherwise region and zone. */
function levelsOf(fleet: Fleet, of: string): string[] {
  const keys = fleet.placements.get(of)?.terms.map((term) => term.topologyKey) ?? [];
  const has = (key: string) => [...fleet.clusters.values()].some((cluster) => key in cluster.labels || key in cluster.claims);
  const meant = keys.filter(has);
  if (meant.length) return meant;
  const plain_ = ["region", "zone"].filter(has);
  return plain_.length ? plain_ : map.levelsOf(onMap(fleet).nodes);
}

/** Clusters as the nodes of a map, and choices as their pods. */
function onMap(fleet: Fleet): { nodes: NodeState[]; pods: Pod[] } {
  const nodes = [...fleet.clusters].map(([name, row]) => ({
    name, labels: { ...row.claims, ...row.labels }, isReady: row.available, isCordoned: false, isTainted: row.tainted,
  })).sort((a, b) => natural(a.name, b.name));
  const pods = [...fleet.placements].flatMap(([of, row]) => row.clusters.map(({ name }) => ({
    key: `${of} ${name}`, name, owner: "", workload: of,
    state: { node: name, isReady: true, isTerminating: false, isFinished: false },
  })));
  return { nodes, pods };
}

const nameOf = (of: string): string => of.slice(of.indexOf("/") + 1);

const WORDS = { ignored: "left alone", misconfigured: "misconfigured", short: "too few clusters", uneven: "not spread as asked for", asAsked: "as asked for" };

function article(of: string, row: PlacementRow, isChosen: boolean, choose: (of: string) => void): HTMLElement {
  const n = row.clusters.length, kind = isTrouble(row) ? "bad" : row.state === "ignored" ? "dim" : "ok";
  const mark = { bad: "✗ ", dim: "", ok: "✓ " }[kind];
  const box = h("article", { class: isChosen ? "workload chosen" : "workload", "aria-label": of, "data-of": of },
    h("div", { class: "head" },
      h("button", { type: "button", class: "name", "aria-pressed": String(isChosen), onclick: () => choose(of) }, of.replace(/^default\//, "")),
      h("span", { class: "dim" }, "Placement"),
      h("span", { class: "num" }, row.wanted === null ? counted(n, "cluster") : `${n} of ${counted(row.wanted, "cluster")}`),
      h("span", { class: `tag ${kind} verdict-word` }, `${mark}${WORDS[row.state]}`)));
  const rows = row.terms.map((term, depth) => ({ term, topologies: row.topologies.filter((one) => one.topology.length === depth + 1) }));
  const charts = rows.filter(({ topologies }) => topologies.length > 0).map(({ term, topologies }, depth) => {
    const label = (one: string[]) => depth ? `${one[depth - 1]} › ${one[depth] || '""'}` : one[depth] || '""';
    const bars = topologies.map((one) => ({ label: label(one.topology), count: one.selected, note: note(one), least: one.minimum, limit: limit(one, term) }));
    return h("div", { class: "constraint" }, plain(`clusters by ${term.topologyKey}`, bars, isHard(term)),
      h("p", { class: "words" }, h("b", {}, short(term.topologyKey)), asked(term), ...held(term, topologies)));
  });
  append(box, [charts.length > 0 && h("div", { class: "constraints" }, ...charts), ...row.conditions.filter((one) => one.type !== "PlacementMisconfigured" || !one.good).map(condition)]);
  if (row.warning) box.append(h("p", { class: "warn" }, `! ${row.warning}`));
  const replicas = row.clusters.filter((one) => one.replicas !== null);
  if (replicas.length) box.append(h("p", { class: "words" }, `replicas: ${replicas.map((one) => `${one.name} ${one.replicas}`).join(", ")}`));
  append(box, moved(row));
  if (row.notSelected?.length) {
    box.append(h("details", {}, h("summary", {}, `why not the ${counted(row.notSelected.reduce((sum, one) => sum + one.count, 0), "other cluster")}`),
      ...row.notSelected.map((one) => h("p", { class: "words" }, `${one.message}: ${names(one.clusters, one.count)}`))));
  }
  return box;
}

const isHard = (term: Term): boolean => term.whenUnsatisfiable === "DoNotSchedule";

/** The most that a topology may have; undefined if it is compared with nothing. */
const limit = ({ minimum }: Topology, term: Term): number | undefined => minimum === undefined ? undefined : minimum + (term.maxSkew ?? 1);

/** `of 4, weight 2`. */
function note({ clusters, weight, selected, minimum }: Topology): string {
  const parts = [`of ${clusters}`];
  if (weight !== undefined && weight !== null) parts.push(`weight ${weight}`);
  if (minimum === undefined && !selected) parts.push("not compared");
  return parts.join(", ");
}

/** Whether the skews are within maxSkew, and the most that a topology may have. */
function held(term: Term, topologies: Topology[]): (HTMLElement | string)[] {
  const compared = topologies.filter((one) => one.skew !== undefined);
  if (!compared.length) return [];
  const max = term.maxSkew ?? 1, skew = Math.max(...compared.map((one) => one.skew!)), isOver = skew > max;
  const kind = isOver ? (isHard(term) ? "bad" : "warn") : "ok", mark = isOver ? (isHard(term) ? "✗" : "!") : "✓";
  const minima = [...new Set(compared.map((one) => one.minimum!))];
  const most = minima.length > 1 ? ": each is compared with the others in the same parent" : `: minimum ${minima[0]}, a topology ${isHard(term) ? "may" : "should"} have ${minima[0]! + max} at most`;
  const out = compared.length < topologies.length ? "; one that maxGroups or a weight of 0 leaves out is not compared" : "";
  return [". ", h("span", { class: `tag ${kind}` }, `${mark} skew ${skew}, ${isOver ? `over maxSkew ${max}` : "within maxSkew"}`), most, out];
}

/** `: hard, maxSkew 1, at least 2`. */
function asked(term: Term): string {
  const parts = [`: ${isHard(term) ? "hard" : "soft"}, maxSkew ${term.maxSkew ?? 1}`];
  if (term.minGroups) parts.push(`at least ${term.minGroups}`);
  if (term.maxGroups) parts.push(`at most ${term.maxGroups}`);
  return parts.join(", ");
}

function condition(one: Condition): HTMLElement {
  return h("p", { class: "pending" }, h("span", { class: `tag ${one.good ? "ok" : "bad"}` }, one.good ? "✓" : "✗"),
    h("span", {}, one.message, " ", h("span", { class: "dim" }, one.reason)));
}

function names(all: string[], n = all.length): string {
  const shown = all.slice(0, NAMES_MAX).join(", ");
  return n > NAMES_MAX ? `${shown} and ${n - NAMES_MAX} more` : shown;
}

/** What moves against the clusters before. */
function moved(row: PlacementRow): HTMLElement[] {
  const found = row.difference;
  if (!found || !(found.gone.length + found.new.length + (found.replicas?.length ?? 0))) return [];
  const each = (all: Moved[], sign: string) => all.length ? h("p", { class: "words" }, `${sign} `,
    names(all.map((one) => `${one.clusterName}${one.reason ? ` (${one.reason === "anyway" ? "without the change, too" : one.reason})` : ""}`))) : null;
  const replicas = (found.replicas ?? []).map((one) => `${one.clusterName} ${one.before} → ${one.after}`);
  const lines = [each(found.gone, "− gone:"), each(found.new, "+ new:"), replicas.length ? h("p", { class: "words" }, `~ replicas: ${names(replicas)}`) : null];
  return [h("p", { class: "words" }, h("b", {}, `${found.gone.length} gone, ${found.new.length} new, ${found.stay.length} stay`)), ...lines.filter((one) => one !== null)];
}

/** What is wrong with Placements, each with a link. */
export function troubles(fleet: Fleet, go: (of: string) => void): HTMLElement[] {
  const bad = [...fleet.placements].filter(([, row]) => isTrouble(row)).sort(([a, one], [b, other]) => rank(one) - rank(other) || natural(a, b));
  return bad.map(([of, row]) => {
    const told = row.conditions.find((one) => !one.good);
    const message = `${of.replace(/^default\//, "")}: ${row.clusters.length}${row.wanted === null ? "" : ` of ${row.wanted}`} clusters, ${WORDS[row.state]}${told ? `: ${told.message}` : ""}`;
    return finding({ code: "placement", severity: "error", message, help: row.help?.length ? row.help.join("; ") : null }, () => go(of));
  });
}

export interface Probe { placements(): string[]; chosen(): string }

export function fleet(data: FleetData, root: HTMLElement): Probe {
  const found = read(Object.entries(data.data.rows)), { title, changes } = data.report;
  const wrong = h("section", { class: "card", "aria-label": "What is wrong" });
  const shown = part(() => write());
  const write = () => state.write({ placement: shown.chosen(), boxes: shown.levels().join(",") });
  const all = [...found.placements.values()], bad = all.filter(isTrouble);
  const words = bad.length
    ? `✗ ${RANKS.map((one) => [all.filter((row) => row.state === one).length, one] as const).filter(([n]) => n).map(([n, one]) => `${n} ${one}`).join(", ")}`
    : `✓ ${counted(all.length, "Placement")} as asked for`;
  document.title = `${words.slice(0, 2)}${title}`;
  root.append(h("header", {}, h("h1", {}, title),
    h("span", { class: "dim" }, dotted([counted(found.clusters.size, "cluster"), counted(all.length, "Placement")])),
    h("span", { class: `verdict ${bad.length ? "bad" : "ok"}` }, words),
    changes ? h("p", { class: "story" }, h("b", {}, "What if "), `${changes}: these are the Placements then; − and + say what moves.`) : ""),
  h("main", {}, h("div", { class: "grid" }, h("div", {}, wrong, shown.list), h("div", {}, shown.place))));
  const items = troubles(found, (of) => { shown.choose(of); shown.list.scrollIntoView({ block: "nearest" }); });
  items.push(...found.findings.filter((one) => one.severity !== "note").map((one) => finding(one, undefined)));
  const chosen = all.reduce((sum, row) => sum + row.clusters.length, 0);
  const well = h("p", { class: "well" }, h("b", { class: "tag ok" }, "✓ Nothing is wrong: "),
    `${all.length} of ${counted(all.length, "Placement")} as asked for, with ${counted(chosen, "choice")} among ${counted(found.clusters.size, "cluster")}.`);
  wrong.append(h("h2", {}, "What is wrong"), ...listed(items, [], well));
  shown.show(found);
  write();
  document.body.dataset["ready"] = "true";
  return { placements: () => [...found.placements.keys()], chosen: shown.chosen };
}
