// The domain map: boxes nested by labels, the nodes of each on a canvas, and the same as a table.

import { short } from "./bars.ts";
import { counted, grouped, h, natural, unbroken } from "./dom.ts";
import type { NodeState, Pod } from "./run.ts";

/** Boxes of one level; equal empty ones are folded before. */
const BOXES_MAX = 60;
/** With more nodes in a box, a node is a square without a name. */
const NAMED_MAX = 16;
/** With more, a square stands for several nodes. */
const SQUARES_MAX = 400;
const ROWS_MAX = 200;
const BY_DEFAULT = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

/** What the boxes hold: nodes with pods, or clusters with the Placements that chose them. */
export interface Words {
  node: string;
  other: string;
  /** What is drawn for each kind of pod, by class. */
  signs: [kind: string, text: string][];
  others: string;
  /** Of how many it is said that they are in no box. */
  away: (n: number, of: string) => string;
}
const PODS: Words = {
  node: "node", other: "other pod", others: "+2: pods of others",
  away: (n, of) => `${counted(n, "pod")} of ${of} on no node`,
  signs: [["", "ready"], [" start", "starting"], [" out", "terminating, does not count"], [" wait", "on no node"]],
};
export const CLUSTERS: Words = {
  node: "cluster", other: "other choice", others: "+2: choices of other Placements", signs: [["", "chosen"]],
  away: (n, of) => `${counted(n, "cluster")} of ${of} not in this fleet`,
};

interface Held { node: NodeState; chosen: Pod[]; others: number }
interface Box { key: string; name: string; nodes: Held[]; boxes: Box[] }

/** The map of the nodes at a moment; `levels` are label keys, outermost first. */
export function draw(nodes: NodeState[], pods: Pod[], of: string, levels: string[], room: Room, words = PODS): HTMLElement {
  const byNode = new Map<string, Held>(nodes.map((node) => [node.name, { node, chosen: [], others: 0 }]));
  const homeless: Pod[] = [];
  for (const pod of pods) {
    if (pod.state.isFinished) continue;
    const held = byNode.get(pod.state.node);
    if (pod.workload !== of) { if (held) held.others += 1; }
    else if (held) held.chosen.push(pod);
    else homeless.push(pod);
  }
  const name = of.slice(of.indexOf("/") + 1);
  const box = h("div", { class: "map" });
  const tops = nest([...byNode.values()], levels);
  box.append(level(tops, name, room, words));
  if (box.querySelector("[data-heat]")) {
    const what = words === PODS ? "pods of others" : "choices of other Placements";
    box.append(h("p", { class: "dim small quiet" }, `Small squares: blue is the share of nodes with ${name}, grey the ${what}: the stronger the colour, the more.`.replace("nodes", `${words.node}s`)));
  }
  if (homeless.length) {
    const names = homeless.slice(0, 4).map((pod) => pod.name).join(", ");
    box.append(h("p", { class: "homeless" }, h("i", { class: "pod wait", "aria-hidden": "true" }),
      `${words.away(homeless.length, name)}: ${names}${homeless.length > 4 ? `, and ${homeless.length - 4} more` : ""}`));
  }
  return box;
}

/** What the squares mean, and the choice of the labels that nest the boxes; `keys` are those of the nodes. */
export function legend(levels: string[], keys: string[], choose: (levels: string[]) => void, words = PODS): HTMLElement {
  const many = keys.filter((label) => label !== "kubernetes.io/hostname");
  const value = levels.join(",");
  const choices = new Set([value, ...BY_DEFAULT.filter((level) => many.includes(level)), ...many, ""]);
  const select = h("select", { onchange: () => choose(select.value ? select.value.split(",") : []) },
    ...[...choices].map((choice) => h("option", { value: choice, selected: choice === value }, choice.replaceAll(",", " › ") || "no label")));
  return h("div", { class: "key" },
    ...words.signs.map(([kind, text]) => h("span", {}, h("i", { class: `pod${kind}` }), text)), h("span", {}, words.others), h("label", {}, "Boxes by ", select));
}

/** The labels that nest the boxes at first: region and zone, as far as the nodes have several. */
export function levelsOf(nodes: NodeState[]): string[] {
  const found = BY_DEFAULT.filter((level) => nodes.some((node) => level in node.labels));
  const values = (label: string) => new Set(nodes.map((node) => node.labels[label])).size;
  return found.length === 2 && values(found[0]!) < 2 ? [found[1]!] : found;
}

function nest(held: Held[], levels: string[]): Box[] {
  const [key, ...rest] = levels;
  if (key === undefined) return [{ key: "", name: "", nodes: held, boxes: [] }];
  const groups = new Map<string, Held[]>();
  for (const one of held) {
    const value = one.node.labels[key] ?? "";
    const group = groups.get(value);
    if (group) group.push(one); else groups.set(value, [one]);
  }
  return [...groups].sort(([a], [b]) => natural(a, b)).map(([name, nodes]) => (
    { key, name, nodes, boxes: rest.length ? nest(nodes, rest) : [] }
  ));
}

function level(boxes: Box[], of: string, room: Room, words: Words): HTMLElement {
  const list = h("div", { class: "boxes" });
  // Many boxes without a pod of the workload are one sentence.
  const empty = boxes.filter((box) => chosen(box) === 0);
  const isFolded = boxes.length > 8 && empty.length > 3;
  const shown = (isFolded ? boxes.filter((box) => chosen(box) > 0) : boxes).slice(0, BOXES_MAX);
  for (const box of shown) list.append(drawBox(box, of, room, words));
  const rest = (isFolded ? boxes.length - empty.length : boxes.length) - shown.length;
  const key = short(boxes[0]?.key ?? "");
  if (isFolded) list.append(h("p", { class: "dim folded" }, `${empty.length} more by ${key} have no ${words === PODS ? "pod" : "cluster"} of ${of}`));
  if (rest > 0) list.append(h("p", { class: "dim folded" }, `and ${rest} more by ${key}: nest by fewer labels to see them`));
  return list;
}

function chosen(box: Box): number {
  return box.nodes.reduce((n, held) => n + held.chosen.length, 0);
}

function drawBox(box: Box, of: string, room: Room, words: Words): HTMLElement {
  const away = box.nodes.filter((held) => !held.node.isReady).length;
  const isLost = away > 0 && away === box.nodes.length;
  const cordoned = box.nodes.filter((held) => held.node.isCordoned).length;
  const others = box.nodes.reduce((n, held) => n + held.others, 0);
  const counting = box.nodes.reduce((n, held) => n + held.chosen.filter((pod) => !pod.state.isTerminating).length, 0);
  const leaving = chosen(box) - counting;
  const facts = words === PODS ? [`${grouped(counting)} ${of}`] : [`${grouped(counting)} chosen`];
  if (leaving) facts.push(`${leaving} terminating`);
  if (others) facts.push(counted(others, words.other));
  facts.push(counted(box.nodes.length, words.node));
  if (away && !isLost) facts.push(`${away} not ready`);
  if (cordoned) facts.push(`${cordoned} cordoned`);
  const free = freeCpu(box, room);
  if (free && !isLost) facts.push(free);
  const title = h("h3", {}, box.key ? box.name || `no ${short(box.key)}` : `all ${words.node}s`, isLost && h("span", { class: "tag bad" }, " not ready"));
  const element = h("section", { class: `box${isLost ? " lost" : ""}` }, title, h("p", { class: "dim num" }, ...unbroken(facts)));
  if (box.boxes.length) element.append(level(box.boxes, of, room, words));
  else if (box.nodes.length) element.append(picture(box, facts.join(", "), words));
  return element;
}

/** Allocatable and requested CPU by node, where the report has them. */
export type Room = Map<string, { allocatable: number; requested: number }>;

/** CPUs of a quantity: `2500m` is 2.5. */
export function cpus(quantity: string | undefined): number {
  if (!quantity) return 0;
  return quantity.endsWith("m") ? Number(quantity.slice(0, -1)) / 1000 : Number(quantity);
}

function freeCpu(box: Box, room: Room): string | undefined {
  let allocatable = 0, requested = 0;
  for (const { node } of box.nodes) {
    const one = room.get(node.name);
    if (!one) return undefined;
    allocatable += one.allocatable;
    requested += one.requested;
  }
  const round = (n: number) => (n >= 100 ? Math.round(n) : Math.round(n * 10) / 10).toLocaleString("en-US");
  return `${round(allocatable - requested)} of ${round(allocatable)} CPU free`;
}

/** The nodes of a box, drawn once it has a width. */
function picture(box: Box, label: string, words: Words): HTMLElement {
  const isNamed = box.nodes.length <= NAMED_MAX;
  // Names that are not drawn are not compared.
  const sorted = [...box.nodes].sort((a, b) => b.chosen.length - a.chosen.length || (isNamed ? natural(a.node.name, b.node.name) : 0));
  // Nodes without a pod of the workload that nothing tells apart are one sentence below.
  const plain = isNamed ? sorted.filter((held) => !held.chosen.length && held.node.isReady && !held.node.isCordoned) : [];
  const shown = plain.length > 2 ? sorted.filter((held) => !plain.includes(held)) : sorted;
  const canvas = h("canvas", { role: "img", "aria-label": `${box.name || `${words.node}s`}: ${label}` });
  const holder = h("div", { class: "nodes" }, shown.length > 0 && canvas);
  if (shown.length < sorted.length) {
    const all = shown.length ? "" : "all ";
    holder.append(h("p", { class: "dim small" }, `${all}${counted(plain.length, words.node)} without one: ${plain.map((held) => held.node.name).join(", ")}`));
  }
  const each = Math.ceil(shown.length / SQUARES_MAX);
  if (!isNamed) {
    if (isHeat(shown.length)) holder.dataset["heat"] = "";
    if (each > 1) holder.append(h("p", { class: "dim small" }, `a square is ${each} ${words.node}s`));
  }
  painters.set(canvas, (colours) => { paintNodes(canvas, shown, isNamed, colours); return shown.length; });
  return holder;
}

/** How each canvas is drawn; returns the number of nodes on it. */
export const painters = new WeakMap<HTMLCanvasElement, (colours: Colours) => number>();

/** Draws the canvases below an element; call it when they are in the page, and when the width or the colours change. */
export function paint(root: ParentNode): number {
  const colours = readColours();
  let n = 0;
  for (const canvas of root.querySelectorAll("canvas")) {
    n += painters.get(canvas)?.(colours) ?? 0;
  }
  return n;
}

/** Many nodes are small squares, shaded by what is on them. */
const isHeat = (n: number): boolean => n > 120;

function paintHeat(canvas: HTMLCanvasElement, held: Held[], colours: Colours): void {
  const each = Math.ceil(held.length / SQUARES_MAX), cell = 7, step = cell + 1;
  const n = Math.ceil(held.length / each), width = Math.max(40, canvas.parentElement!.clientWidth);
  const perRow = Math.max(1, Math.floor(width / step)), context = sized(canvas, perRow * step, Math.ceil(n / perRow) * step);
  let most = 1;
  for (const one of held) most = Math.max(most, one.others);
  for (let i = 0; i < n; i++) {
    const from = i * each, end = Math.min(held.length, from + each), x = (i % perRow) * step, y = Math.floor(i / perRow) * step;
    let own = 0, others = 0, away = 0;
    for (let j = from; j < end; j++) {
      const one = held[j]!;
      if (one.chosen.length) own += 1;
      if (!one.node.isReady) away += 1;
      others += one.others;
    }
    context.fillStyle = own ? colours.ready : colours.other;
    context.globalAlpha = own ? 0.4 + (0.6 * own) / (end - from) : 0.12 + (0.7 * others) / (end - from) / most;
    context.fillRect(x, y, cell, cell);
    if (away) {
      context.globalAlpha = 1;
      context.strokeStyle = colours.bad;
      context.strokeRect(x + 0.5, y + 0.5, cell - 1, cell - 1);
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(x + cell, y + cell);
      context.stroke();
    }
  }
}

/** The canvas with this size in pixels of the page, cleared. */
export function sized(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const scale = window.devicePixelRatio || 1, context = canvas.getContext("2d")!;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  context.scale(scale, scale);
  return context;
}

export interface Colours { ground: string; line: string; text: string; ready: string; bad: string; other: string }

function readColours(): Colours {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(name).trim();
  return { ground: of("--bg"), line: of("--edge"), text: of("--fg"), ready: of("--ready"), bad: of("--bad"), other: of("--used") };
}

const POD = 11, GAP = 4;

function paintNodes(canvas: HTMLCanvasElement, held: Held[], isNamed: boolean, colours: Colours): void {
  if (!isNamed && isHeat(held.length)) return paintHeat(canvas, held, colours);
  const width = Math.max(40, canvas.parentElement!.clientWidth);
  const context = canvas.getContext("2d")!;
  context.font = "12px system-ui, sans-serif";
  const nameWidth = Math.max(...held.map((one) => context.measureText(one.node.name).width), 40);
  const most = Math.max(1, ...held.map((one) => one.chosen.length + (one.others ? 1 : 0)));
  const cell = isNamed ? Math.min(width, Math.max(nameWidth + 14, 66)) : 13;
  const perRow = Math.max(1, Math.floor((width + GAP) / (cell + GAP)));
  const wide = isNamed ? (width + GAP) / perRow - GAP : cell;
  const fits = Math.max(1, Math.floor((wide - 8) / (POD + 3)));
  const tall = isNamed ? 22 + Math.ceil(Math.min(most, fits * 3) / fits) * (POD + 3) : cell;
  sized(canvas, width, Math.ceil(held.length / perRow) * (tall + (isNamed ? GAP : 2)));
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "top";
  held.forEach((one, i) => {
    const x = (i % perRow) * (wide + (isNamed ? GAP : 2)), y = Math.floor(i / perRow) * (tall + (isNamed ? GAP : 2));
    if (isNamed) paintNamed(context, one, x, y, wide, tall, fits, colours);
    else paintSmall(context, one, x, y, cell, colours);
  });
}

function paintNamed(
  context: CanvasRenderingContext2D, held: Held, x: number, y: number, wide: number, tall: number, fits: number, colours: Colours,
): void {
  context.lineWidth = 1;
  context.strokeStyle = held.node.isReady ? colours.line : colours.bad;
  context.setLineDash(held.node.isReady ? [] : [3, 2]);
  context.strokeRect(x + 0.5, y + 0.5, wide - 1, tall - 1);
  context.setLineDash([]);
  context.fillStyle = colours.text;
  const flag = held.node.isCordoned ? " (cordoned)" : "";
  context.fillText(held.node.name + flag, x + 5, y + 4, wide - 8);
  const squares: (Pod | null)[] = [...held.chosen];
  if (held.others) squares.push(null);
  squares.slice(0, fits * 3).forEach((pod, p) => {
    const left = x + 5 + (p % fits) * (POD + 3), up = y + 20 + Math.floor(p / fits) * (POD + 3);
    if (pod) return paintPod(context, pod, left, up, colours);
    context.fillStyle = colours.text;
    context.fillText(`+${held.others}`, left, up - 1);
  });
}

function paintPod(context: CanvasRenderingContext2D, pod: Pod, x: number, y: number, colours: Colours): void {
  context.strokeStyle = colours.ready;
  context.fillStyle = colours.ready;
  context.lineWidth = 1.5;
  context.strokeRect(x + 0.75, y + 0.75, POD - 1.5, POD - 1.5);
  if (pod.state.isTerminating) hatch(context, x, y, POD, POD);
  else if (pod.state.isReady) context.fillRect(x, y, POD, POD);
}

/** The sign of pods that are terminating: lines across. */
function hatch(context: CanvasRenderingContext2D, x: number, y: number, wide: number, tall: number): void {
  context.save();
  context.beginPath();
  context.rect(x, y, wide, tall);
  context.clip();
  context.beginPath();
  for (let d = 4; d < wide + tall; d += 4) {
    context.moveTo(x + d - tall, y + tall);
    context.lineTo(x + d, y);
  }
  context.lineWidth = 1;
  context.stroke();
  context.restore();
}

/** A node without a name: filled with ready pods, an outline with starting ones, hatched with terminating ones. */
function paintSmall(context: CanvasRenderingContext2D, held: Held, x: number, y: number, cell: number, colours: Colours): void {
  const leaving = held.chosen.filter((pod) => pod.state.isTerminating).length;
  const ready = held.chosen.filter((pod) => pod.state.isReady && !pod.state.isTerminating).length;
  const n = held.chosen.length - leaving;
  context.lineWidth = 1;
  if (held.chosen.length) {
    // Of a cell with both, the right third is hatched.
    const full = leaving === 0 ? cell : n ? Math.round(cell * 0.65) : 0;
    context.strokeStyle = context.fillStyle = colours.ready;
    context.strokeRect(x + 0.5, y + 0.5, cell - 1, cell - 1);
    if (ready) context.fillRect(x, y, full, cell);
    if (leaving) hatch(context, x + full, y, cell - full, cell);
    if (n > 1) {
      context.fillStyle = ready ? colours.ground : colours.text;
      context.font = "10px system-ui, sans-serif";
      context.fillText(n > 9 ? "+" : String(n), x + full / 2 - 2.5, y + 2);
    }
  } else {
    context.strokeStyle = held.node.isReady ? colours.line : colours.bad;
    if (held.others) {
      context.fillStyle = colours.other;
      context.fillRect(x + 3, y + 3, cell - 6, cell - 6);
    }
    context.strokeRect(x + 0.5, y + 0.5, cell - 1, cell - 1);
  }
  if (!held.node.isReady) {
    context.strokeStyle = colours.bad;
    context.beginPath();
    context.moveTo(x + 2, y + 2);
    context.lineTo(x + cell - 2, y + cell - 2);
    context.stroke();
  }
}

/** The map as a table: nodes with the same numbers in the same boxes are one row. */
export function table(nodes: NodeState[], pods: Pod[], of: string, levels: string[], words = PODS): HTMLElement {
  const held = new Map<string, { node: NodeState; ready: number; starting: number; leaving: number; others: number }>();
  for (const node of nodes) held.set(node.name, { node, ready: 0, starting: 0, leaving: 0, others: 0 });
  for (const pod of pods) {
    const one = held.get(pod.state.node);
    if (!one || pod.state.isFinished) continue;
    if (pod.workload !== of) one.others += 1;
    else if (pod.state.isTerminating) one.leaving += 1;
    else if (pod.state.isReady) one.ready += 1;
    else one.starting += 1;
  }
  const groups = new Map<string, { cells: (string | number)[]; names: string[] }>();
  for (const { node, ready, starting, leaving, others } of held.values()) {
    const state = [node.isReady ? "ready" : "not ready", node.isCordoned && "cordoned", node.isTainted && "tainted"].filter(Boolean).join(", ");
    const counts = words === PODS ? [ready, starting, leaving, others] : [ready, others];
    const cells = [...levels.map((key) => node.labels[key] ?? "none"), ...counts, state];
    const id = JSON.stringify(cells);
    const group = groups.get(id);
    if (group) group.names.push(node.name); else groups.set(id, { cells, names: [node.name] });
  }
  const rows = [...groups.values()].sort((a, b) => natural(a.cells.join(" "), b.cells.join(" ")));
  const name = of.slice(of.indexOf("/") + 1);
  const heads = [...levels.map(short), ...(words === PODS ? [`${name} ready`, "starting", "terminating", "other pods"] : ["chosen", "other Placements"]), "state"];
  const body = h("tbody");
  for (const { cells, names } of rows.slice(0, ROWS_MAX)) {
    const label = names.length > 3 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ");
    body.append(h("tr", {}, h("th", { scope: "row" }, label), ...cells.map((cell) => h("td", { class: typeof cell === "number" ? "num" : "" }, cell))));
  }
  const found = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${words.node}s as a table` },
    h("table", { class: "plain" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, `${words.node}s`), ...heads.map((head) => h("th", { scope: "col" }, head)))), body));
  if (rows.length > ROWS_MAX) found.append(h("p", { class: "dim" }, `and ${rows.length - ROWS_MAX} more rows`));
  return found;
}
