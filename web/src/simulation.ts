// The page of a simulation.

import { fewWorkloads } from "./list.ts";
import * as fleet from "./fleet.ts";
import * as heat from "./heat.ts";
import * as map from "./map.ts";
import { spoken } from "./clock.ts";
import { append, copyButton, counted, dotted, h, natural } from "./dom.ts";
import { byWorkload, Run, type Frame, type NodeState, type Pod } from "./run.ts";
import * as state from "./state.ts";
import { timeline, type Timeline } from "./timeline.ts";
import type { Data, Line } from "./types.ts";
import { variants } from "./variants.ts";
import * as why from "./why.ts";
import * as workloads from "./workloads.ts";
import { wrong } from "./wrong.ts";

const EVENTS_MAX = 200;

/** What tests ask for: what is shown, and how much is drawn. */
export interface Probe { runs: Run[]; frame(): Frame; pods(): Pod[]; nodes(): NodeState[]; move(frame: number): number }

export function simulation(data: Data, root: HTMLElement): Probe {
  const runs = data.runs.map((_, i) => new Run(data, i));
  const asked = state.read();
  const red = runs.findIndex((run) => data.verdicts.some((one) => one.red && one.scenario === run.head.scenario && one.variant === run.head.variant));
  let index = Math.min(runs.length - 1, Math.max(0, asked.run ?? Math.max(0, red)));
  const page = h("main", {});
  append(root, [header(data, runs, index), page]);
  if (!runs.length) {
    page.append(h("section", { class: "card" }, h("p", {}, "No run was played to its end.")));
    document.body.dataset["ready"] = "true";
  }

  let run: Run, ranks: Map<string, number>, line: Timeline, order: string[];
  let current = 0, chosen = "", by = "", levels: string[] = [];
  /** The labels and domains of these nodes. */
  let known: { of: NodeState[]; labels: Map<string, Record<string, string>>; domains: Map<string, string[]> } | undefined;
  let pods: Pod[] = [], nodes: NodeState[] = [];
  const few = fewWorkloads(() => show());
  const placements = fleet.part(() => write());
  const list = h("div"), where = h("div"), twin = h("div"), happened = h("section", { class: "card" }), because = h("section", { class: "card", "aria-label": "Why it is Pending" });

  function open(i: number, at?: string): void {
    index = i;
    run = runs[i]!;
    ranks = workloads.ranks(run);
    order = [...run.workloads].sort((a, b) => ranks.get(a)! - ranks.get(b)! || natural(a, b));
    if (!order.includes(chosen)) chosen = order[0] ?? "";
    if (!run.keys.includes(by)) by = key(chosen);
    levels = levels.length ? levels : map.levelsOf(run.nodesAt(run.frames[run.frames.length - 1]!));
    line = timeline(run, (frame) => move(frame));
    page.replaceChildren(
      line.element,
      h("div", { class: "grid" },
        h("div", {}, wrong(data, run, (target) => {
          if (target.workload) chosen = target.workload;
          by = key(chosen);
          move(target.frame >= 0 ? target.frame : current);
          document.getElementById("workloads")?.scrollIntoView({ block: "nearest" });
        }), ...(run.isHub ? [placements.list] : []),
        // A hub may have neither nodes nor workloads of its own.
        ...(run.isHub && !order.length ? [] : [card(counted(order.length, "workload") + (order.length > 1 ? ", worst first" : ""), list)])),
        h("div", {}, ...(run.isHub ? [placements.place] : []), ...(run.isHub && !order.length ? [] : [h("section", { class: "card", "aria-label": "Where it is" }, where, !run.sums && map.legend(levels, run.nodeKeys, (chosen) => { levels = chosen; show(); }),
          h("details", { ontoggle: drawTwin }, h("summary", {}, "The same as a table"), twin))]), because, happened)),
      foot());
    const all = variants(data, runs, index, (other) => {
      open(other, run.frames[current]!.clock);
      page.querySelector<HTMLElement>(".variants [aria-pressed=true]")?.focus();
    });
    // Seeds of one variant come last: what is wrong in them is the same.
    if (data.verdicts.length > 1) page.prepend(all); else page.insertBefore(typeof all === "string" ? document.createTextNode(all) : all, page.lastChild);
    move(at === undefined ? run.opening() : run.at(at));
  }

  /** The key whose skew is drawn over time: that of the first hard constraint. */
  function key(of: string): string {
    const all = of ? run.constraints(of, run.frames[run.frames.length - 1]!) : [];
    const spreads = all.filter((spread) => run.skews(of, spread.by).some((one) => one.skew > 0));
    const hard = spreads.find((spread) => spread.constraint?.whenUnsatisfiable === "DoNotSchedule");
    return (hard ?? spreads[0] ?? all[0])?.by ?? run.keys[0] ?? "";
  }

  function foot(): HTMLElement {
    const replay = run.head.replay;
    const box = h("footer", { class: "foot" });
    if (replay) box.append(h("span", {}, "This run again: "), h("code", {}, replay), " ", copyButton(replay));
    return box;
  }

  function move(frame: number): void {
    current = Math.max(0, Math.min(run.frames.length - 1, frame));
    show();
  }

  function show(): void {
    const frame = run.frames[current]!;
    nodes = run.nodesAt(frame);
    pods = run.podsAt(frame);
    line.show(frame, current, chosen, by);
    const name = chosen.slice(chosen.indexOf("/") + 1);
    const seen = run.picture(frame);
    const map_ = seen ? heat.draw(seen.picture, seen.picture.own[chosen] ?? {}, name)
      : chosen ? map.draw(nodes, pods, chosen, levels, run.room(frame)) : h("p", { class: "dim" }, "no workload");
    where.replaceChildren(h("h2", {}, `Where ${name} is, ${seen ? seen.when : `${spoken(frame.at)} after the start`}`), map_,
      seen ? h("p", { class: "dim small quiet" }, "This run is too large to be shown pod by pod. It is shown as sums, as the cluster was at the start and at the end of each step.") : "");
    map.paint(where);
    drawList(frame);
    drawTwin();
    drawHappened(frame);
    because.replaceChildren(...why.draw(run, chosen, frame));
    because.hidden = !because.firstChild;
    if (run.isHub) placements.show(fleet.read(run.fleet(frame)));
    write();
    document.body.dataset["ready"] = "true";
  }

  function write(): void {
    const frame = run.frames[current]!;
    const boxes = run.isHub && !nodes.length ? placements.levels() : levels;
    state.write({
      run: index || undefined, at: `${frame.clock}${frame.isBefore ? "~" : ""}`, workload: chosen, by, boxes: boxes.join(","),
      ...(run.isHub ? { placement: placements.chosen() } : {}),
    });
  }

  function drawList(frame: Frame): void {
    if (!known || known.of !== nodes) known = { of: nodes, labels: new Map(nodes.map((node) => [node.name, node.labels])), domains: new Map() };
    const { labels, domains } = known;
    const context: workloads.Context = {
      run, frame, chosen, pods: byWorkload(pods),
      domainOf: (node, label) => labels.get(node)?.[label],
      domains: (label) => {
        let found = domains.get(label);
        if (!found) domains.set(label, (found = [...new Set(nodes.map((node) => node.labels[label]).filter((value) => value !== undefined))]));
        return found;
      },
      choose: (of) => { chosen = of; by = key(of); show(); },
    };
    few(list, order, chosen, (of) => workloads.draw(of, context));
  }

  function drawTwin(): void {
    const isOpen = (twin.parentElement as HTMLDetailsElement | null)?.open;
    const seen = isOpen ? run.picture(run.frames[current]!)?.picture : undefined;
    twin.replaceChildren(!isOpen ? "" : seen ? heat.table(seen, seen.own[chosen] ?? {}, chosen.slice(chosen.indexOf("/") + 1)) : map.table(nodes, pods, chosen, levels));
  }

  function drawHappened(frame: Frame): void {
    const begin = current ? run.frames[current - 1]!.lines : 0;
    const lines = run.lines.slice(begin, frame.lines);
    const told = lines.filter((one) => one.type !== "updated" || one.changed);
    const items = told.slice(0, EVENTS_MAX).map((one) => h("li", {}, tell(one)));
    if (told.length > EVENTS_MAX) items.push(h("li", {}, `and ${told.length - EVENTS_MAX} more`));
    happened.replaceChildren(h("h2", {}, "What happened then"),
      items.length ? h("ol", { tabindex: 0, role: "list", "aria-label": "what happened" }, ...items) : h("p", { class: "dim" }, run.sums ? "Steps and warnings alone are listed: this run is too large for all its changes." : "Nothing: the state at the end of the step."));
  }

  if (asked.workload) chosen = asked.workload;
  if (asked.by) by = asked.by;
  if (asked.boxes !== undefined) levels = asked.boxes.split(",").filter(Boolean);
  if (runs.length) open(index, asked.at);
  addEventListener("resize", () => map.paint(where));
  for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) matchMedia(query).addEventListener("change", () => map.paint(where));
  addEventListener("hashchange", () => {
    const now = state.read();
    if (now.workload) chosen = now.workload;
    if (now.by) by = now.by;
    if (runs.length) open(Math.min(runs.length - 1, now.run ?? 0), now.at);
  });
  return {
    runs, frame: () => run.frames[current]!, pods: () => pods, nodes: () => nodes,
    move: (frame) => { const begin = performance.now(); move(frame); return performance.now() - begin; },
  };
}

function card(title: string, ...children: Node[]): HTMLElement {
  return h("section", { class: "card", id: "workloads", "aria-label": title }, h("h2", {}, title), ...children);
}

function header(data: Data, runs: Run[], index: number): HTMLElement {
  const run = runs[index];
  const { summary } = data.report;
  const severe = data.report.findings.filter((one) => one.severity !== "note").length;
  const isRed = summary.red || data.verdicts.some((one) => one.red);
  const file = run?.scenario?.file;
  const title = !run ? "strew simulate" : file && file !== "<story>" ? run.scenario!.name : files(run.head.replay ?? "");
  const most = run?.report.steps.reduce((best, step) => Math.max(best, step.pods.pods), 0) ?? 0;
  const first = run?.report.steps[0]?.pods;
  const hub = run?.isHub ? fleet.read(run.fleet(run.frames[run.frames.length - 1]!)) : undefined;
  const of = hub && !first?.workloads ? [counted(hub.clusters.size, "cluster"), counted(hub.placements.size, "Placement")]
    : [counted(first?.nodes ?? 0, "node"), counted(first?.workloads ?? 0, "workload"), `up to ${counted(most, "pod")}`];
  const facts = run ? [...of, `${counted(summary.runs, "run")}, shown: seed ${run.report.seed}`] : [];
  const broken = run?.report.steps.filter((step) => step.verdict === "broken").map((step) => step.name ?? "a step") ?? [];
  const words = isRed
    ? `✗ ${broken.length ? `${broken.join(", ")}: ` : ""}${summary.broken ? `broke in ${summary.broken} of ${counted(summary.runs, "run")}` : "failed"}`
    : `✓ ${summary.broken ? `as expected: ${summary.held} held, ${summary.broken} broke as they must or may` : `held in ${summary.held} of ${counted(summary.runs, "run")}`}${severe ? `, ${counted(severe, "warning")}` : ""}`;
  document.title = `${isRed ? "✗" : "✓"} ${title}`;
  const story = run?.scenario?.story;
  return h("header", {}, h("h1", {}, title), h("span", { class: "dim" }, dotted(facts)),
    h("span", { class: `verdict ${isRed ? "bad" : severe ? "warn" : "ok"}` }, words),
    story && h("p", { class: "dim story" }, story));
}

/** The files of the command that plays the run again: the story has no file of its own. */
function files(replay: string): string {
  const words = replay.split(" ").slice(2);
  const end = words.findIndex((word) => word.startsWith("-"));
  const named = words.slice(0, end < 0 ? words.length : end).map((word) => word.replace(/'/g, "").replace(/.*\//, ""));
  return named.filter(Boolean).join(", ") || "strew simulate";
}

function tell(line: Line): string {
  switch (line.type) {
    case "step": return `▸ ${line.step ?? "step"} begins`;
    case "verb": return `▸ ${line.verb}${line.refused ? `, refused: ${line.refused}` : ""}`;
    case "event": return `${line.warning ? "!" : "·"} ${line.regarding} ${line.reason}: ${line.note} (${line.source})`;
    case "end": return "▸ the run ends";
    case "deleted": return `− ${line.key}`;
    case "created": return `+ ${line.key}${line.changed?.["subset"] ? `, subset ${line.changed["subset"]}` : ""}`;
  }
  const each = Object.entries(line.changed ?? {}).map(([name, change]) => {
    const [was, is] = Array.isArray(change) ? change as [unknown, unknown] : [null, change];
    return `${name} ${JSON.stringify(was)} → ${JSON.stringify(is)}`;
  });
  return `~ ${line.key} ${each.join(", ")}`;
}
