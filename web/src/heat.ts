// The map of a cluster that is too large to be seen node by node: boxes of cells, whose sums strew has made.

import { short } from "./bars.ts";
import { counted, grouped, h, unbroken } from "./dom.ts";
import * as map from "./map.ts";
import type { Heat, HeatBox } from "./types.ts";

const USES = ["nothing", "to 25 %", "to 50 %", "to 75 %", "to 99 %", "all"];
const BOXES_MAX = 60, CELL = 7;

/** The boxes; `own` has the pods of the chosen workload by box. */
export function draw(heat: Heat, own: Record<string, number>, name: string): HTMLElement {
  return h("div", { class: "map" }, level(heat, 0, [], own, name),
    h("p", { class: "dim small quiet" }, "Small squares: the stronger the colour, the more CPU is requested; a red line across: nodes that are not ready."));
}

function level(heat: Heat, depth: number, above: string[], own: Record<string, number>, name: string): HTMLElement {
  const least = heat.keys.length ? depth + 1 : 0;
  const inside = heat.boxes.map((box, i) => ({ box, i })).filter(({ box }) => box.path.length === least && above.every((value, at) => box.path[at] === value));
  const list = h("div", { class: "boxes" }, ...inside.slice(0, BOXES_MAX).map(({ box, i }) => {
    const facts = factsOf(box, own[i] ?? 0, name), key = short(heat.keys[depth] ?? "");
    const label = box.path.length ? box.path[depth] || `no ${key}` : "all nodes";
    const element = h("section", { class: "box" }, h("h3", {}, label), h("p", { class: "dim num" }, ...unbroken(facts)));
    if (box.path.length < heat.keys.length) element.append(level(heat, depth + 1, box.path, own, name));
    else element.append(picture(box, `${label}: ${facts.join(", ")}`));
    return element;
  }));
  if (inside.length > BOXES_MAX) list.append(h("p", { class: "dim folded" }, `and ${inside.length - BOXES_MAX} more: the table has them`));
  return list;
}

function factsOf(box: HeatBox, own: number, name: string): string[] {
  const facts = name ? [`${grouped(own)} ${name}`] : [];
  facts.push(counted(box.pods, "pod"), counted(box.nodes, "node"));
  if (box.notReady) facts.push(`${grouped(box.notReady)} not ready`);
  if (box.cordoned) facts.push(`${grouped(box.cordoned)} cordoned`);
  facts.push(`${cpu(box.milliCpu - box.requestedMilliCpu)} of ${cpu(box.milliCpu)} CPU free`);
  return facts;
}

function cpu(milli: number): string {
  const n = milli / 1000;
  return (Math.abs(n) >= 100 ? Math.round(n) : Math.round(n * 10) / 10).toLocaleString("en-US");
}

function picture(box: HeatBox, label: string): HTMLElement {
  const canvas = h("canvas", { role: "img", "aria-label": label });
  map.painters.set(canvas, (colours) => paint(canvas, box, colours));
  return h("div", { class: "nodes" }, canvas,
    box.nodesPerCell > 1 && h("p", { class: "dim small" }, `a square is ${counted(box.nodesPerCell, "node")}`));
}

function paint(canvas: HTMLCanvasElement, box: HeatBox, colours: map.Colours): number {
  const step = CELL + 1, width = Math.max(40, canvas.parentElement!.clientWidth), perRow = Math.max(1, Math.floor(width / step));
  const context = map.sized(canvas, Math.min(perRow, box.used.length) * step, Math.ceil(box.used.length / perRow) * step);
  context.fillStyle = colours.ready;
  context.strokeStyle = colours.bad;
  box.used.forEach((used, i) => {
    const x = (i % perRow) * step, y = Math.floor(i / perRow) * step;
    context.globalAlpha = 0.1 + 0.9 * used / 1000;
    context.fillRect(x, y, CELL, CELL);
    if (!box.away[i]) return;
    context.globalAlpha = 1;
    context.strokeRect(x + 0.5, y + 0.5, CELL - 1, CELL - 1);
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x + CELL, y + CELL);
    context.stroke();
  });
  return box.nodes;
}

/** The same as a table: a row a box, with its nodes by their share of use. */
export function table(heat: Heat, own: Record<string, number>, name: string): HTMLElement {
  const heads = [...heat.keys.map(short), `pods of ${name}`, "pods", "nodes", "not ready", "cordoned", "CPU free", ...USES.map((use) => `nodes: ${use}`)];
  const body = h("tbody");
  heat.boxes.forEach((box, i) => {
    if (box.path.length < heat.keys.length) return;
    const path = box.path.length ? box.path.map((value) => value || "none") : ["all nodes"];
    const cells = [own[i] ?? 0, box.pods, box.nodes, box.notReady, box.cordoned, cpu(box.milliCpu - box.requestedMilliCpu), ...box.byUse];
    body.append(h("tr", {}, ...path.map((value, at) => at ? h("td", {}, value) : h("th", { scope: "row" }, value)), ...cells.map((cell) => h("td", { class: "num" }, cell.toLocaleString("en-US")))));
  });
  const first = heat.keys.length ? [] : ["nodes"];
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "nodes as a table" },
    h("p", { class: "dim small" }, "Nodes by the share of their CPU that is requested."),
    h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ...[...first, ...heads].map((head) => h("th", { scope: "col" }, head)))), body));
}
