// The page of a cluster, as it was recorded or as it is: what is wrong, how each workload is spread, and where it is.

import { rowOf, short } from "./bars.ts";
import { counted, dotted, h, keep, natural, svg } from "./dom.ts";
import * as fleet from "./fleet.ts";
import * as heat from "./heat.ts";
import { fewWorkloads } from "./list.ts";
import { follow } from "./live.ts";
import * as map from "./map.ts";
import { Past } from "./past.ts";
import { byWorkload, type NodeState, type Pod } from "./run.ts";
import * as state from "./state.ts";
import type { ClusterData, ClusterNode, ClusterPod, ClusterWorkload, Finding, Heat, LedgerRow, Standing, Sums } from "./types.ts";
import { article, subsets, waiting, type Place } from "./workloads.ts";
import { finding, listed } from "./wrong.ts";

/** The rows of a cluster at a moment, as objects. */
interface Cluster {
  sums?: Sums;
  standing?: Standing;
  findings: Finding[];
  workloads: Map<string, ClusterWorkload>;
  pods: Pod[];
  nodes: NodeState[];
  room: map.Room;
  /** Of a large cluster, instead of nodes and pods. */
  heat?: Heat;
  /** WorkloadSpreads by the workload that they are for. */
  ledgers: Map<string, LedgerRow[]>;
  fleet: fleet.Fleet;
}

/** What tests ask for. */
export interface Probe { workloads(): string[]; pods(): Pod[]; nodes(): NodeState[]; draws(): number; moments(): number }

export function cluster(data: ClusterData, root: HTMLElement): Probe {
  const about = data.report, asked = state.read();
  const past = new Past();
  let live = new Map<string, unknown>(Object.entries(data.data?.rows ?? {})), now = read(live);
  /** The moment of the past that is shown; undefined: the newest. */
  let moment: number | undefined;
  let chosen = asked.workload ?? "", levels = asked.boxes?.split(",").filter(Boolean), lost: Date | undefined, draws = 0;
  const head = h("header"), trouble = h("div", { role: "alert" });
  const wrong = h("section", { class: "card", "aria-label": "What is wrong" });
  const list = h("div"), title = h("h2"), where = h("div"), legend = h("div"), twin = h("div");
  const workloads = h("section", { class: "card", id: "workloads", "aria-label": "Workloads" }, title, list);
  const place = h("section", { class: "card", "aria-label": "Where it is" }, where, legend,
    h("details", { ontoggle: () => drawTwin() }, h("summary", {}, "The same as a table"), twin));
  const time = timeline((to) => { moment = to >= past.last ? undefined : to; look(); });
  const placements = fleet.part(() => write());
  const left = h("div"), right = h("div"), grid = h("div", { class: "grid" }, left, right);
  const page = h("main", {}, grid);
  root.append(head, trouble, page);
  const few = fewWorkloads(() => drawList());

  /** Reads the moment that is shown, and draws it. */
  function look(): void {
    if (moment !== undefined) moment = Math.max(moment, past.first);
    now = read(moment === undefined ? live : past.rows(moment, live));
    show();
  }

  function write(): void {
    const hub = now.fleet.placements.size > 0;
    state.write({ workload: chosen, boxes: hub && !now.nodes.length ? placements.levels().join(",") : levels?.join(","), placement: hub ? placements.chosen() : "" });
  }

  function show(): void {
    draws += 1;
    drawHead();
    drawTrouble();
    // Without rows there is nothing to draw yet, but what is wrong with the connection.
    page.hidden = !now.sums;
    if (!now.sums) return;
    if (!now.workloads.has(chosen)) chosen = order()[0] ?? "";
    keep(wrong, drawWrong);
    drawList();
    // A hub may have neither nodes nor workloads of its own.
    const isHub = now.fleet.placements.size > 0 || now.fleet.clusters.size > 0;
    const [hasWorkloads, hasNodes] = [!isHub || now.workloads.size > 0, !isHub || now.nodes.length > 0 || now.heat !== undefined];
    arrange(left, [wrong, ...(hasWorkloads ? [workloads] : []), ...(isHub ? [placements.list] : [])]);
    arrange(right, [...(hasNodes ? [place] : []), ...(isHub ? [placements.place] : [])]);
    arrange(page, past.last ? [time.element, grid] : [grid]);
    if (hasNodes) drawMap();
    if (isHub) placements.show(now.fleet);
    drawTime();
    write();
    document.body.dataset["ready"] = "true";
  }

  function choose(of: string): void {
    chosen = of;
    show();
  }

  /** Workloads with errors first, then those with warnings. */
  function order(): string[] {
    const rank = new Map<string, number>();
    for (const one of now.findings) {
      const severity = ["error", "warning"].indexOf(one.severity);
      if (one.object && severity >= 0) rank.set(one.object, Math.min(severity, rank.get(one.object) ?? 2));
    }
    return [...now.workloads.keys()].sort((a, b) => (rank.get(a) ?? 2) - (rank.get(b) ?? 2) || natural(a, b));
  }

  function drawHead(): void {
    const { sums, findings } = now;
    const facts = sums ? [counted(sums.nodes, "node"), counted(sums.workloads, "workload"), counted(sums.pods, "pod")] : [];
    if (now.fleet.clusters.size) facts.push(counted(now.fleet.clusters.size, "cluster"), counted(now.fleet.placements.size, "Placement"));
    if (about.version) facts.unshift(`Kubernetes ${about.version}`);
    const count = (severity: string) => findings.filter((one) => one.severity === severity).length;
    const unmet = [...now.fleet.placements.values()].filter(fleet.isTrouble).length;
    const [errors, warnings] = [count("error") + unmet, count("warning")];
    const words = !sums ? "reading the cluster" : errors ? `✗ ${counted(errors, "error")}${warnings ? `, ${counted(warnings, "warning")}` : ""}`
      : warnings ? `! ${counted(warnings, "warning")}` : "✓ Nothing is wrong";
    document.title = `${sums ? words.slice(0, 2) : ""}${about.title}`;
    const text = [about.title, dotted(facts), words].join("\n");
    if (head.dataset["text"] === text) return;
    head.dataset["text"] = text;
    head.replaceChildren(h("h1", {}, about.title), h("span", { class: "dim" }, dotted(facts)),
      h("span", { class: `verdict ${!sums ? "" : errors ? "bad" : warnings ? "warn" : "ok"}`, role: "status" }, words),
      about.live ? h("p", { class: "dim story" }, "Live: changes are shown as they come.") : "");
  }

  /** What keeps the page from being true: each is said once. */
  function drawTrouble(): void {
    const { standing } = now, said: string[] = [];
    if (lost) said.push(`Connection to strew ui lost since ${clock(lost)}: this is the cluster as it was then. It is tried again.`);
    const [first, ...more] = standing?.failing ?? [];
    if (first) said.push(`The API server cannot be read since ${clock(new Date(standing!.since ?? Date.now()))} (${first}${more.length ? `, and ${more.length} more` : ""}): this may be old. It is tried again.`);
    for (const one of standing?.leftOut ?? []) said.push(`Left out: ${one}.`);
    if (standing?.unreadable) said.push(`${counted(standing.unreadable, "object")} could not be read.`);
    const text = said.join("\n");
    if (trouble.dataset["text"] === text) return;
    trouble.dataset["text"] = text;
    trouble.replaceChildren(...said.map((one) => h("p", { class: "card trouble" }, `! ${one}`)));
  }

  function drawWrong(): void {
    const item = (one: Finding) => finding(one, one.object && now.workloads.has(one.object) ? () => {
      choose(one.object!);
      workloads.scrollIntoView({ block: "nearest" });
    } : undefined);
    const severe = now.findings.filter((one) => one.severity !== "note"), notes = now.findings.filter((one) => one.severity === "note");
    const unmet = fleet.troubles(now.fleet, (of) => {
      placements.choose(of);
      placements.list.scrollIntoView({ block: "nearest" });
    });
    wrong.replaceChildren(h("h2", {}, "What is wrong"), ...listed([...unmet, ...severe.map(item)], notes.map(item), well(now)));
  }

  function drawList(): void {
    const all = order(), labels = new Map(now.nodes.map((node) => [node.name, node.labels]));
    const pods = byWorkload(now.pods);
    const domains = new Map<string, string[]>();
    const at: Place = {
      chosen, choose,
      domainOf: (node, label) => labels.get(node)?.[label],
      domains: (label) => {
        const values = () => [...new Set(now.nodes.map((node) => node.labels[label]).filter((value) => value !== undefined))];
        if (!domains.has(label)) domains.set(label, values());
        return domains.get(label)!;
      },
    };
    title.textContent = counted(all.length, "workload") + (all.length > 1 ? ", worst first" : "");
    keep(list, () => few(list, all, chosen, (of) => drawWorkload(of, pods.get(of) ?? [], at)));
  }

  function drawWorkload(of: string, pods: Pod[], at: Place): HTMLElement {
    const { replicas, ready, terminating, leftAlone, pending, spread } = now.workloads.get(of)!;
    const below = pending.map(waiting);
    if (leftAlone) below.push(h("p", { class: "dim" }, `${counted(leftAlone, "pod")} on no node: another scheduler places them, or they terminate`));
    for (const ledger of now.ledgers.get(of) ?? []) below.push(subsets(ledger.of, ledger.rows));
    const n = pending.reduce((sum, group) => sum + group.count, 0);
    return article(of, { wanted: replicas, ready, pending: n, leaving: terminating ?? 0, rows: spread.map(rowOf), below }, pods, at);
  }

  /** The pods of the chosen workload by box of a large cluster. */
  const own = (): Record<string, number> => now.workloads.get(chosen)?.boxes ?? {};

  function drawMap(): void {
    if (now.heat) {
      where.replaceChildren(h("h2", {}, chosen ? `Where ${nameOf(chosen)} is` : "Nodes"), heat.draw(now.heat, own(), nameOf(chosen)));
      legend.replaceChildren();
      map.paint(where);
      return drawTwin();
    }
    levels ??= map.levelsOf(now.nodes);
    const name = nameOf(chosen);
    where.replaceChildren(h("h2", {}, chosen ? `Where ${name} is` : "Nodes"), map.draw(now.nodes, now.pods, chosen, levels, now.room));
    map.paint(where);
    const keys = [...new Set(now.nodes.flatMap((node) => Object.keys(node.labels)))].sort();
    const text = `${levels} ${keys}`;
    if (legend.dataset["text"] !== text) {
      legend.dataset["text"] = text;
      legend.replaceChildren(map.legend(levels, keys, (levels_) => { levels = levels_; show(); }));
    }
    drawTwin();
  }

  function drawTwin(): void {
    const isOpen = (twin.parentElement as HTMLDetailsElement | null)?.open;
    keep(twin, () => twin.replaceChildren(!isOpen ? "" : now.heat ? heat.table(now.heat, own(), nameOf(chosen)) : map.table(now.nodes, now.pods, chosen, levels ?? [])));
  }

  /** The moments since the page was opened, and the skew of the chosen workload over them. */
  function drawTime(): void {
    if (!past.last) return;
    const skews = past.of(`workload ${chosen}`, live).map(({ moment, row }) => ({ moment, spread: (row as ClusterWorkload | undefined)?.spread[0] }));
    time.show(past, moment, skews, chosen);
  }

  show();
  if (about.live) {
    follow({
      rows: (rows, before) => {
        // Until all kinds are read there is nothing to go back to.
        const isBegin = before?.some(([key, row]) => key === "sums" && row === undefined);
        if (before?.some(([key]) => key !== "standing") && !isBegin) past.note(Date.now(), before);
        live = rows;
        if (moment !== undefined && moment >= past.first) drawTime(); else look();
      },
      lost: (since) => { lost = since; drawTrouble(); },
    });
  }
  addEventListener("resize", () => map.paint(where));
  for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) matchMedia(query).addEventListener("change", () => map.paint(where));
  addEventListener("hashchange", () => {
    const hash = state.read();
    chosen = hash.workload ?? chosen;
    if (hash.placement) placements.choose(hash.placement);
    levels = hash.boxes?.split(",").filter(Boolean) ?? levels;
    show();
  });
  return { workloads: order, pods: () => now.pods, nodes: () => now.nodes, draws: () => draws, moments: () => past.last - past.first };
}

interface Skew { moment: number; spread: ClusterWorkload["spread"][number] | undefined }

/** The slider over what was seen since the page was opened. */
function timeline(go: (moment: number) => void) {
  const slider = h("input", { type: "range", step: 1, id: "time", "aria-label": "Time" });
  const plot = h("div", { class: "plotline" }), said = h("output", { for: "time", class: "num" }), what = h("span", { class: "dim" });
  const newest = h("button", { type: "button", onclick: () => go(Infinity) }, "Back to now");
  slider.addEventListener("input", () => go(Number(slider.value)));
  const element = h("section", { class: "time", "aria-label": "Time" }, h("div", { class: "track" }, plot, slider), h("div", { class: "under" }, what, h("span", {}, said, " ", newest)));
  const show = (past: Past, moment: number | undefined, skews: Skew[], of: string): void => {
    const at = moment ?? past.last, began = past.began(at);
    slider.min = String(past.first);
    slider.max = String(past.last);
    slider.value = String(at);
    const text = moment === undefined ? "now" : began === undefined ? "when this page was opened" : clock(new Date(began));
    said.textContent = moment === undefined ? `now, after ${counted(past.last, "change")}` : `${text}: the past`;
    slider.setAttribute("aria-valuetext", said.textContent);
    newest.hidden = moment === undefined;
    element.classList.toggle("past", moment !== undefined);
    const spread = skews.findLast((one) => one.spread)?.spread, limit = spread?.constraint?.maxSkew;
    const top = Math.max(2, limit ?? 0, ...skews.map((one) => one.spread?.skew ?? 0)), wide = Math.max(1, past.last - past.first);
    const x = (n: number) => ((n - past.first) / wide) * 1000, y = (n: number) => (42 - (n / top) * 38).toFixed(1);
    const picture = svg("svg", { viewBox: "0 0 1000 46", preserveAspectRatio: "none", "aria-hidden": "true" });
    if (limit !== undefined) picture.append(svg("line", { class: "limit", x1: 0, x2: 1000, y1: y(limit), y2: y(limit) }));
    const path = skews.map(({ moment: at, spread: one }, i) => (i ? ` H${x(at)} V${y(one?.skew ?? 0)}` : `M0 ${y(one?.skew ?? 0)}`)).join("");
    picture.append(svg("path", { d: `${path} H1000` }));
    plot.replaceChildren(spread ? picture : "");
    what.textContent = spread ? `Skew of ${of.slice(of.indexOf("/") + 1)} by ${short(spread.by)} since this page was opened, from change to change${limit === undefined ? "" : `; dashed: maxSkew ${limit}`}.` : "Changes since this page was opened.";
  };
  return { element, show };
}

/** Puts these elements into another one; what is there already keeps its focus. */
function arrange(parent: HTMLElement, wanted: HTMLElement[]): void {
  if (wanted.length !== parent.childElementCount || wanted.some((one, i) => parent.children[i] !== one)) parent.replaceChildren(...wanted);
}

function clock(at: Date): string {
  return at.toLocaleTimeString("en-GB");
}

function read(rows: Map<string, unknown>): Cluster {
  const found: Cluster = { findings: [], workloads: new Map(), pods: [], nodes: [], room: new Map(), ledgers: new Map(), fleet: fleet.read(rows) };
  const pods: { pod: Pod; created: number }[] = [];
  const named: [string, Finding][] = [];
  for (const [key, row] of rows) {
    const space = key.indexOf(" "), name = key.slice(space + 1);
    switch (space < 0 ? key : key.slice(0, space)) {
      case "heat": found.heat = row as Heat; break;
      case "sums": found.sums = row as Sums; break;
      case "standing": found.standing = row as Standing; break;
      case "finding": named.push([key, row as Finding]); break;
      case "workload": found.workloads.set(name, row as ClusterWorkload); break;
      case "pod": pods.push({ pod: podOf(name, row as ClusterPod), created: (row as ClusterPod).created }); break;
      case "ledger": {
        const ledger = row as LedgerRow, of = ledger.target ?? "";
        found.ledgers.set(of, [...found.ledgers.get(of) ?? [], ledger]);
        break;
      }
      case "node": {
        const node = row as ClusterNode;
        found.nodes.push({ name, labels: node.labels, isReady: node.ready, isCordoned: node.cordoned, isTainted: node.tainted });
        found.room.set(name, { allocatable: map.cpus(node.allocatable), requested: map.cpus(node.requested) });
      }
    }
  }
  // A finding that came with a change stands at the end of the rows.
  found.findings = named.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
  found.nodes.sort((a, b) => natural(a.name, b.name));
  // The bars take the revision of the last pod for the newest.
  found.pods = pods.sort((a, b) => a.created - b.created || natural(a.pod.name, b.pod.name)).map(({ pod }) => pod);
  return found;
}

const nameOf = (of: string): string => of.slice(of.indexOf("/") + 1);

function podOf(name: string, row: ClusterPod): Pod {
  return {
    key: `Pod ${name}`, name: name.slice(name.indexOf("/") + 1), owner: row.revision ?? "", workload: row.of,
    state: { node: row.node ?? "", isReady: row.ready, isTerminating: row.terminating, isFinished: false },
  };
}

function well({ sums, fleet: { placements } }: Cluster): HTMLElement {
  const { pods, ready, workloads, hard, soft } = sums!;
  const parts = !workloads && placements.size ? [] : [`${ready} of ${counted(pods, "pod")} of ${counted(workloads, "workload")} ready, 0 Pending`];
  for (const [word, { within, all }] of [["hard", hard], ["soft", soft]] as const) {
    if (all) parts.push(`${within} of ${counted(all, `${word} constraint`)} within maxSkew`);
  }
  if (placements.size) parts.push(`${placements.size} of ${counted(placements.size, "Placement")} as asked for`);
  return h("p", { class: "well" }, h("b", { class: "tag ok" }, "✓ Nothing is wrong: "), `${parts.join("; ")}.`);
}
