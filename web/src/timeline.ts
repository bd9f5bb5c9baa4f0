// The slider over time: steps as buttons, marks, and the skew of the chosen workload below.

import { spoken } from "./clock.ts";
import { h, svg } from "./dom.ts";
import { short } from "./bars.ts";
import type { Frame, Run } from "./run.ts";

const WIDTH = 1000;

export interface Timeline {
  element: HTMLElement;
  show(frame: Frame, index: number, of: string, by: string): void;
}

export function timeline(run: Run, move: (frame: number) => void): Timeline {
  const scale = positions(run);
  const steps = h("div", { class: "steps", role: "group", "aria-label": "Steps" });
  const buttons = run.report.steps.map((step, s) => {
    const [mark, kind] = step.verdict === "broken" ? ["✗", "bad"]
      : (step.findings ?? []).some((one) => one.severity !== "note") ? ["!", "warn"] : step.verdict === "open" ? ["…", ""] : ["✓", "ok"];
    const chosen = step.chosen?.length ? ` ${step.chosen.join(", ")}` : "";
    const how = step.state === "notAtRest" ? "not at rest after" : step.state === "cut" ? "ended after" : "";
    const lasted = span(step.began, step.ended);
    const took = lasted > 0 ? spoken(lasted) : step.name ? "" : `at ${spoken(seconds(step.began))}`;
    const button = h("button", { type: "button", class: `step ${kind}`, onclick: () => move(run.end(s)) },
      h("span", { class: `tag ${kind}` }, mark!), " ", h("b", {}, `${step.name ?? `step ${s + 1}`}${chosen}`), " ", h("span", { class: "dim took" }, `${how} ${took}`.trim()));
    steps.append(button);
    return button;
  });
  const slider = h("input", { type: "range", min: 0, max: WIDTH, step: 1, id: "time", "aria-describedby": "keys" });
  const plot = h("div", { class: "plotline" });
  const marks = h("div", { class: "marks", "aria-hidden": "true" });
  for (const mark of run.marks) {
    marks.append(h("i", { class: `m-${mark.kind}`, "style:left": `${(scale[mark.frame]! / WIDTH) * 100}%` }));
  }
  const now = h("output", { for: "time", class: "num", "aria-live": "polite" });
  const what = h("span", { class: "dim" });
  const element = h("section", { class: "time", "aria-label": "Time" }, steps,
    h("div", { class: "track" }, plot, marks, h("label", { for: "time", class: "sr" }, "Time"), slider),
    h("div", { class: "under" }, what, now),
    h("p", { class: "dim small", id: "keys" }, "Arrow keys go from mark to mark, Page Up and Page Down from change to change. Quiet time is drawn short."));

  let current = 0;
  const stops = [...new Set([0, ...run.marks.map((mark) => mark.frame), run.frames.length - 1])].sort((a, b) => a - b);
  slider.addEventListener("input", () => move(nearest(scale, Number(slider.value))));
  slider.addEventListener("keydown", (event) => {
    const next = stops.find((stop) => stop > current) ?? current;
    const previous = stops.findLast((stop) => stop < current) ?? current;
    const to: Record<string, number> = {
      ArrowRight: next, ArrowUp: next, ArrowLeft: previous, ArrowDown: previous,
      PageDown: Math.max(0, current - 1), PageUp: Math.min(run.frames.length - 1, current + 1),
      Home: 0, End: run.frames.length - 1,
    };
    const target = to[event.key];
    if (target === undefined) return;
    event.preventDefault();
    move(target);
  });
  const end = run.frames[run.frames.length - 1]!;
  let drawn = "";
  return {
    element,
    show(frame, index, of, by) {
      current = index;
      slider.value = String(scale[index]!);
      const name = run.step(frame)?.name;
      const told = run.marks.filter((mark) => mark.frame === index && mark.kind === "breach").map((mark) => mark.text);
      const label = `${spoken(frame.at)} of ${spoken(end.at)}${name ? `, ${frame.isBefore ? `end of ${name}` : name}` : ""}`;
      slider.setAttribute("aria-valuetext", told.length ? `${label}: ${told.join("; ")}` : label);
      now.textContent = label;
      buttons.forEach((button, s) => button.setAttribute("aria-current", s === frame.step ? "step" : "false"));
      if (drawn !== `${of} ${by}`) {
        drawn = `${of} ${by}`;
        const skews = run.skews(of, by);
        const limit = skews.length ? run.constraints(of, frame).find((spread) => spread.by === by)?.constraint?.maxSkew : undefined;
        plot.replaceChildren(line(run, scale, skews, limit));
        what.textContent = skews.length
          ? `Skew of ${of.slice(of.indexOf("/") + 1)} by ${short(by)}: at most ${Math.max(...skews.map((one) => one.skew))}${limit === undefined ? "" : `; dashed: maxSkew ${limit}`}. ● breach ▲ warning │ step`
          : "";
      }
    },
  };
}

function span(from: string, to: string): number {
  return seconds(to) - seconds(from);
}

import { seconds } from "./clock.ts";

/** Where each moment stands on the slider: long quiet stretches are drawn short. */
function positions(run: Run): number[] {
  const weights = run.frames.map((frame, f) => f ? Math.log1p(Math.max(0, frame.at - run.frames[f - 1]!.at)) + 0.15 : 0);
  const total = weights.reduce((a, b) => a + b, 0) || 1;
  let sum = 0;
  return weights.map((weight) => { sum += weight; return Math.round((sum / total) * WIDTH); });
}

function nearest(scale: number[], value: number): number {
  let best = 0;
  scale.forEach((one, i) => { if (Math.abs(one - value) < Math.abs(scale[best]! - value)) best = i; });
  return best;
}

function line(run: Run, scale: number[], skews: { at: number; skew: number }[], limit: number | undefined): SVGElement {
  const H = 46, top = Math.max(2, limit ?? 0, ...skews.map((one) => one.skew));
  const y = (skew: number) => (H - 4 - (skew / top) * (H - 8)).toFixed(1);
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${H}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  if (limit !== undefined) picture.append(svg("line", { class: "limit", x1: 0, x2: WIDTH, y1: y(limit), y2: y(limit) }));
  let path = "", f = 0, last = 0;
  for (const { at, skew } of skews) {
    while (f + 1 < run.frames.length && run.frames[f + 1]!.at <= at) f += 1;
    const x = scale[f]!;
    path += path ? ` H${x} V${y(skew)}` : `M${x} ${y(skew)}`;
    last = skew;
  }
  if (path) picture.append(svg("path", { d: `${path} V${y(last)} H${WIDTH}` }));
  return picture;
}
