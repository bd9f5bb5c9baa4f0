// The workloads, worst first, each with its skew bars and what is Pending.

import * as bars from "./bars.ts";
import { counted, grouped, h } from "./dom.ts";
import { idOf, idOfLog, type Frame, type Pod, type Run } from "./run.ts";
import type { Pending, Subset } from "./types.ts";

const RANKS = ["LOST", "OUTAGE", "DEGRADED", "Pending", "uneven", ""];

/** How bad a workload fared in the run: an index into RANKS. The order does not change from moment to moment. */
export function ranks(run: Run): Map<string, number> {
  const byId = new Map<string, number>();
  const worse = (id: string, rank: number) => byId.set(id, Math.min(rank, byId.get(id) ?? RANKS.length - 1));
  for (const step of run.report.steps) {
    for (const one of step.workloads) {
      if (one.pending.length) worse(idOf(one), 3);
      const isUneven = (s: (typeof one.spread)[number]) => s.constraint?.whenUnsatisfiable === "DoNotSchedule" && s.skew > s.constraint.maxSkew;
      if (one.spread.some(isUneven)) worse(idOf(one), 4);
    }
    for (const loss of step.losses ?? []) {
      const rank = RANKS.indexOf(loss.verdict);
      const [kind, name] = loss.of.split("/");
      if (rank < 0 || rank > 2) continue;
      for (const of of run.workloads) {
        if (of.toLowerCase().startsWith(`${kind} `) && of.endsWith(`/${name}`)) worse(idOfLog(of), rank);
      }
    }
  }
  return new Map(run.workloads.map((of) => [of, byId.get(idOfLog(of)) ?? RANKS.length - 1]));
}

/** The nodes, by which pods have domains, and the choice. */
export interface Place {
  domainOf: (node: string, by: string) => string | undefined;
  domains: (by: string) => string[];
  chosen: string;
  choose: (of: string) => void;
}

export interface Context extends Place {
  run: Run;
  frame: Frame;
  pods: Map<string, Pod[]>;
}

/** The numbers of a workload, and what is drawn below them. */
export interface Shown {
  wanted?: number;
  ready: number;
  pending: number;
  leaving: number;
  verdict?: string;
  rows: bars.Row[];
  below: HTMLElement[];
}

export function draw(of: string, context: Context): HTMLElement {
  const { run, frame } = context;
  const pods = context.pods.get(of) ?? [];
  const numbers = run.numbers("workload", of, frame);
  const rest = run.workload(of, run.atRest(frame));
  const [kind, name] = [of.slice(0, of.indexOf(" ")), of.slice(of.indexOf(" ") + 1)];
  const pending = rest ? rest.pending.reduce((n, one) => n + one.count, 0) : numbers?.pending ?? 0;
  const ready = rest?.ready ?? numbers?.ready ?? 0;
  const leaving = rest ? rest.terminating ?? 0 : numbers?.terminating ?? 0;
  const loss = (run.step(frame)?.losses ?? []).find((one) => {
    const [lossKind, lossName] = one.of.split("/");
    return kind.toLowerCase() === lossKind && name.endsWith(`/${lossName}`);
  });
  // The report's replicas leave out a pod that terminates on a lost node, and a StatefulSet makes no other one.
  const wanted = loss?.wanted ?? rest?.replicas ?? run.workload(of, run.step(frame))?.replicas;
  const below = pending ? reasons(rest?.pending, pods, run, frame) : [];
  for (const ledger of run.ledgers(of, frame)) below.push(subsets(ledger.of, ledger.rows));
  return article(of, { wanted, ready, pending, leaving, verdict: loss?.verdict, rows: bars.rows(run, of, frame), below }, pods, context);
}

/** A workload: its numbers, its skew bars, and what is below. */
export function article(of: string, shown: Shown, pods: Pod[], context: Place): HTMLElement {
  const { wanted, ready, pending, leaving, verdict, rows, below } = shown;
  const [kind, name] = [of.slice(0, of.indexOf(" ")), of.slice(of.indexOf(" ") + 1)];
  const facts: (HTMLElement | string)[] = [wanted === undefined ? `${grouped(ready)} ready` : `${grouped(ready)} of ${grouped(wanted)} ready`];
  if (pending) facts.push(" · ", h("span", { class: "tag bad" }, `✗ ${grouped(pending)} Pending`));
  if (leaving) facts.push(` · ${grouped(leaving)} terminating`);
  const bad = verdict === "LOST" || verdict === "OUTAGE" ? "bad" : verdict === "DEGRADED" ? "warn" : "ok";
  const button = h("button", { type: "button", class: "name", "aria-pressed": String(of === context.chosen), onclick: () => context.choose(of) }, name.replace(/^default\//, ""));
  const head = h("div", { class: "head" }, button, h("span", { class: "dim" }, kind), h("span", { class: "num" }, ...facts),
    verdict !== undefined && h("span", { class: `tag ${bad} verdict-word` }, verdict));
  const box = h("article", { class: of === context.chosen ? "workload chosen" : "workload", "aria-label": name, "data-of": of }, head);
  const drawn = rows.filter((row) => row.counts.size > 0 || row.spread?.groups);
  box.append(h("div", { class: "constraints" }, ...drawn.map((row) => bars.draw(row, pods, context.domainOf, context.domains(row.by)))), ...below);
  return box;
}

/** Why pods are Pending: kube-scheduler's message, of the report at the end of a step, of the last event before. */
function reasons(pending: Pending[] | undefined, pods: Pod[], run: Run, frame: Frame): HTMLElement[] {
  let all = pending?.map((one) => ({ count: one.count, message: one.message, pod: one.pod }));
  if (!all) {
    const byNote = new Map<string, { count: number; message: string; pod: string }>();
    for (const pod of pods) {
      if (pod.state.node || pod.state.isFinished) continue;
      const message = run.refusal(pod.key, frame) ?? "the scheduler has not tried it yet";
      const one = byNote.get(message);
      if (one) one.count += 1; else byNote.set(message, { count: 1, message, pod: pod.name });
    }
    all = [...byNote.values()];
  }
  return all.map(waiting);
}

/** Pods that are Pending for one reason. */
export function waiting({ count, message, pod }: { count: number; message: string; pod: string }): HTMLElement {
  const end = message.search(/\. |, preemption:| preemption:/);
  const head = end > 0 ? message.slice(0, end) : message;
  const text = h("div", {}, `${counted(count, "pod")} Pending (${pod}${count > 1 ? ", …" : ""}): ${head}`);
  if (head.length < message.length) text.append(" ", h("details", { class: "inline" }, h("summary", {}, "whole message"), message));
  return h("div", { class: "pending" }, h("i", { class: "pod wait", "aria-hidden": "true" }), text);
}

const COSTS_MAX = 4;
const HEADS = ["subset", "pods", "limit", "counted", "room", "coming", "going", "deletion costs"];

/** The subsets of a WorkloadSpread: its pods, and what the ledger says of them. */
export function subsets(of: string, rows: Subset[]): HTMLElement {
  const body = h("tbody");
  for (const { subset, limit, pods, counted: n, missing, creating, deleting, costs, conditions } of rows) {
    const each = Object.entries(costs ?? {}).sort(([a], [b]) => Number(b) - Number(a));
    const text = each.slice(0, COSTS_MAX).map(([cost, n]) => `${cost || "none"} (${n})`);
    if (each.length > COSTS_MAX) text.push(`and ${each.length - COSTS_MAX} more`);
    const room = missing === -1 ? "any" : missing ?? "";
    const cells = [pods, limit ?? "any", n ?? "", room, creating, deleting, text.join(", ")];
    body.append(h("tr", {},
      h("th", { scope: "row" }, subset, conditions.length > 0 && h("span", { class: "tag bad" }, ` not ${conditions.join(", ")}`)),
      ...cells.map((cell, i) => h("td", { class: "num" }, h("small", { class: "narrow" }, HEADS[i + 1]), cell))));
  }
  const said = "Counted and room are from its status. Coming and going are pods that it let in or out and has not seen yet. A deletion cost stands before its number of pods: the lowest cost goes first.";
  const chart = bars.plain(`pods by subset of ${of}`, rows.map(({ subset, pods, limit }) => (
    { label: subset, count: pods, limit: limit ?? undefined, note: limit === null ? "no limit" : `limit ${limit}${pods > limit ? `, ${pods - limit} over` : ""}` })));
  return h("div", { class: "constraint" }, chart, h("p", { class: "words" }, h("b", {}, "subset"), `: pods by subset of ${of}; dashed: the limit`),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `subsets of ${of}` },
      h("table", { class: "plain stacked" }, h("thead", {}, h("tr", {}, ...HEADS.map((head) => h("th", { scope: "col" }, head)))), body)),
    h("p", { class: "dim small" }, said));
}
