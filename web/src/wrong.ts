// What is wrong: failed steps and findings first, each with a link to where it is seen.

import { counted, grouped, h } from "./dom.ts";
import { isBroken, type Run } from "./run.ts";
import type { Data, Finding, PlacementRow } from "./types.ts";

const SHOWN = 8;

/** Where a finding is seen: a moment, and the workload that it is about. */
export interface Target { frame: number; workload?: string }

export function wrong(data: Data, run: Run, go: (target: Target) => void): HTMLElement {
  const box = h("section", { class: "card", "aria-label": "What is wrong" }, h("h2", {}, "What is wrong"));
  const all = data.report.findings.filter((one) => one.severity !== "note");
  const severe = [...all.filter((one) => one.severity === "error"), ...all.filter((one) => one.severity !== "error")];
  const items = [...breaches(data, run, severe, go), ...severe.map((one) => item(one, run, go))];
  const notes = data.report.findings.filter((one) => one.severity === "note");
  box.append(...listed(items, notes.map((one) => item(one, run, go)), well(data, run)));
  return box;
}

/** What is wrong, the first of it at once, and notes below; `nothing` if nothing is. */
export function listed(items: HTMLElement[], notes: HTMLElement[], nothing: HTMLElement): HTMLElement[] {
  const found = items.length ? items.slice(0, SHOWN) : [nothing];
  const rest = items.slice(SHOWN);
  if (rest.length) found.push(h("details", {}, h("summary", {}, `${rest.length} more`), ...rest));
  if (notes.length) found.push(h("details", {}, h("summary", {}, counted(notes.length, "note")), ...notes));
  return found;
}

/** What failed in the run that is shown and no finding says. */
function breaches(data: Data, run: Run, severe: Finding[], go: (target: Target) => void): HTMLElement[] {
  const found: HTMLElement[] = [];
  if (severe.some((one) => one.severity === "error" && one.code === "expectation")) return found;
  run.report.steps.forEach((step, s) => {
    if (step.verdict !== "broken") return;
    const told = severe.filter((one) => one.severity === "error" && step.name && one.message.startsWith(`${step.name}: `));
    const isTold = (why: string) => told.some((one) => says(one.message.slice(step.name!.length + 2), why));
    for (const why of (step.why ?? []).filter((why) => !isTold(why))) found.push(entry("error", `${step.name ?? `step ${s + 1}`}: ${why}`, [], () => go({ frame: run.end(s) }), names(run)));
  });
  for (const one of run.report.always) {
    if (isBroken(one)) found.push(entry("error", `${one.text}: ${one.why ?? ""}`, [], () => go({ frame: run.at(one.at ?? run.report.ended) }), names(run)));
  }
  for (const verdict of data.verdicts) {
    if (verdict.red && !verdict.broken.length) found.push(entry("error", `variant ${verdict.variant}: ${verdict.result}`, [], undefined, []));
  }
  return found;
}

/** True if a finding says what a claim failed by: `why` is that sentence, behind the claim and a colon. */
function says(message: string, why: string): boolean {
  return why.split(": ").some((_, n, all) => message.startsWith(all.slice(n).join(": ")));
}

function item(one: Finding, run: Run, go: (target: Target) => void): HTMLElement {
  const seen = target(one, run);
  return finding(one, seen && (() => go(seen)), names(run));
}

/** A finding; `go` goes to where it is seen, `steps` are the names that its message may begin with. */
export function finding(one: Finding, go: (() => void) | undefined, steps: string[] = []): HTMLElement {
  const below: (HTMLElement | null)[] = [];
  if (one.help) below.push(h("p", { class: "fix" }, `help: ${one.help}`));
  if (one.fix) below.push(h("p", { class: "fix" }, "fix: ", h("code", {}, one.fix.change), one.fix.verified ? ` (${one.fix.verified})` : ""));
  if (one.place) below.push(h("p", { class: "fix" }, h("code", {}, `${one.place.file}:${one.place.line}:${one.place.column}`)));
  return entry(one.severity, one.message, below, go, steps, one.object ?? undefined);
}

function names(run: Run): string[] {
  return run.report.steps.flatMap((step) => step.name ?? []);
}

function target(one: Finding, run: Run): Target | undefined {
  const steps = run.report.steps;
  const step = steps.findIndex((step) => step.name && one.message.startsWith(`${step.name}: `));
  const workload = run.about(one.object ?? "", one.message);
  if (step < 0 && !workload) return undefined;
  return { frame: step >= 0 ? run.end(step) : -1, ...(workload ? { workload } : {}) };
}

function entry(severity: Finding["severity"], message: string, below: (HTMLElement | null)[], go: (() => void) | undefined, steps: string[], object?: string): HTMLElement {
  const [mark, kind, word] = { error: ["✗", "bad", "error"], warning: ["!", "warn", "warning"], note: ["·", "dim", "note"] }[severity]!;
  const text = object && !message.includes(object) ? `${object}: ${message}` : message;
  return h("div", { class: "finding" },
    h("span", { class: `tag ${kind}`, role: "img", "aria-label": word! }, mark!),
    h("div", {}, ...parts(text, steps), ...below),
    go && h("button", { type: "button", class: "see", onclick: go, "aria-label": `Show: ${text.slice(0, 60)}` }, "Show"));
}

/** A message as lines: the step in bold, and one line a workload. */
function parts(text: string, steps: string[]): (HTMLElement | string)[] {
  const step = steps.find((name) => text.startsWith(`${name}: `));
  const rest = (step ? text.slice(step.length + 2) : text).split(/; (?=[a-z]+\/)/);
  const lines = rest.map((line) => rest.length > 1 ? h("span", { class: "part" }, line) : line);
  return step ? [h("b", {}, step), ": ", ...lines] : lines;
}

function well(data: Data, run: Run): HTMLElement {
  const { summary } = data.report, last = run.report.steps[run.report.steps.length - 1];
  const spreads = last?.workloads.flatMap((one) => one.spread.filter((spread) => spread.constraint)) ?? [];
  const within = (when: string) => {
    const meant = spreads.filter((spread) => spread.constraint!.whenUnsatisfiable === when);
    return [meant.filter((spread) => spread.skew <= spread.constraint!.maxSkew).length, meant.length] as const;
  };
  const verdict = data.verdicts.find((one) => one.scenario === run.head.scenario && one.variant === run.head.variant);
  const parts = [`${counted(run.report.steps.length, "step")} ${verdict?.result ?? `held in ${summary.held} of ${counted(summary.runs, "run")}`}`];
  const rows = [...run.fleet(run.frames[run.frames.length - 1]!)].filter(([key]) => key.startsWith("placement "));
  const placements = rows.map(([, row]) => row as PlacementRow);
  if (placements.length) parts.push(`at the end ${placements.filter((one) => one.state === "asAsked").length} of ${counted(placements.length, "Placement")} as asked for`);
  if (last && (last.pods.workloads || !placements.length)) parts.push(`at the end of ${last.name ?? `step ${run.report.steps.length}`}: ${counted(last.pods.pods, "pod")} of ${counted(last.pods.workloads, "workload")}, ${grouped(last.pods.pending)} Pending`);
  for (const [word, when] of [["hard", "DoNotSchedule"], ["soft", "ScheduleAnyway"]] as const) {
    const [holding, all] = within(when);
    if (all) parts.push(`${holding} of ${counted(all, `${word} constraint`)} within maxSkew`);
  }
  // A scenario may expect that pods stay Pending.
  const isWell = placements.every((one) => one.state === "asAsked") && !last?.pods.pending;
  return h("p", { class: "well" }, h("b", { class: "tag ok" }, isWell ? "✓ Nothing is wrong: " : "✓ All steps held: "), `${parts.join("; ")}.`);
}
