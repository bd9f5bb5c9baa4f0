// All variants and seeds with their verdicts, side by side: a row a variant, a column a step, a cell a seed.

import { spoken, seconds } from "./clock.ts";
import { copyButton, counted, h } from "./dom.ts";
import type { Run } from "./run.ts";
import type { Data, Verdict } from "./types.ts";

/** More seeds are said in numbers. */
const SEEDS_MAX = 60;
const ROWS_SHOWN = 4;
const BROKEN_SHOWN = 20;

/** The table; `open` shows the run of a variant. Nothing if there is one run only. */
export function variants(data: Data, runs: Run[], index: number, open: (run: number) => void): HTMLElement | string {
  const all = data.verdicts;
  if (all.length < 2 && (all[0]?.played ?? 0) < 2) return "";
  const seeds = new Map(data.report.scenarios.flatMap((scenario) => scenario.variants.map((variant) => [`${scenario.name} ${variant.name}`, variant.seeds])));
  const isOne = new Set(all.map((one) => one.scenario)).size === 1;
  const steps = [...new Set(all.flatMap((one) => one.steps.map((step) => step.when)))];
  const isWide = steps.length <= 8 && isOne;
  const row = (one: Verdict) => {
    const run = runs.findIndex((other) => other.head.scenario === one.scenario && other.head.variant === one.variant);
    const name = isOne ? one.variant : `${one.scenario}: ${one.variant}`;
    const chosen = h("button", { type: "button", class: "name", "aria-pressed": String(run === index), onclick: () => open(run) }, name);
    return h("tr", { class: run === index ? "chosen" : "" },
      h("th", { scope: "row" }, run >= 0 ? chosen : name, must(one)),
      h("td", { class: `tag ${one.red ? "bad" : "ok"}` }, `${one.red ? "✗" : "✓"} ${one.result}`),
      ...(isWide ? steps.map((when) => h("td", { class: "num" }, h("small", { class: "narrow" }, nameOf(when)), step(one, when))) : []),
      h("td", {}, strip(one, seeds.get(`${one.scenario} ${one.variant}`) ?? [])));
  };
  const heads = ["variant", "verdict", ...(isWide ? steps.map(nameOf) : []), "seeds"];
  const table = (rows: Verdict[]) => h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "verdicts by variant" }, h("table", { class: "plain stacked variants" },
    h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))), h("tbody", {}, ...rows.map(row))));
  const order = [...all].sort((a, b) => Number(b.red) - Number(a.red));
  const rest = order.slice(ROWS_SHOWN);
  const red = all.filter((one) => one.red).length;
  const title = `${counted(all.length, "variant")}, ${counted(data.report.summary.runs, "run")}${all.length > 1 ? `: ${red ? `${red} red` : "none is red"}` : ""}`;
  return h("section", { class: "card", "aria-label": "Variants and seeds" }, h("h2", {}, title), table(order.slice(0, ROWS_SHOWN)),
    rest.length > 0 && h("details", {}, h("summary", {}, `${rest.length} more variants`), table(rest)),
    ...broken(all, isOne));
}

/** A step by its name, or by its time if it has none; null: all the time. */
function nameOf(when: string | null): string {
  if (when === null) return "always";
  return /^[0-9]/.test(when) ? `at ${spoken(seconds(when))}` : when;
}

function must(one: Verdict): HTMLElement | string {
  const words: Record<string, string> = { fail: "must break", mayFail: "may break" };
  return words[one.must] ? h("span", { class: "dim" }, ` ${words[one.must]}`) : "";
}

/** In how many seeds a step broke. */
function step(one: Verdict, when: string | null): HTMLElement | string {
  const found = one.steps.find((step) => step.when === when);
  if (!found) return "";
  if (!found.broken && found.open) return h("span", { class: "dim" }, `… open in ${found.open}`);
  if (!found.broken) return h("span", { class: "tag ok" }, "✓");
  const kind = one.red ? "bad" : "warn";
  return h("span", { class: `tag ${kind}` }, `✗ in ${found.broken} of ${one.played}`);
}

/** A cell a seed. */
function strip(one: Verdict, seeds: number[]): HTMLElement | string {
  const broken = new Set(one.broken.map((other) => other.seed));
  const words = one.nBroken ? `${one.nBroken} of ${one.played} broke` : `${counted(one.played, "seed")}, none broke`;
  if (seeds.length > SEEDS_MAX || broken.size < Math.min(one.nBroken, SEEDS_MAX)) return words;
  return h("span", { class: "seeds", role: "img", "aria-label": words },
    ...seeds.map((seed) => h("i", { class: `${broken.has(seed) ? (one.red ? "broke" : "broke meant") : ""}${seed === one.shown ? " shown" : ""}` }, broken.has(seed) ? "✗" : "")));
}

/** The seeds that broke and are not shown, with the commands that play them. */
function broken(all: Verdict[], isOne: boolean): HTMLElement[] {
  const others = all.flatMap((one) => one.broken.filter((other) => other.seed !== one.shown).map((other) => ({ one, other })));
  if (!others.length) return [];
  const items = others.slice(0, BROKEN_SHOWN).map(({ one, other }) => h("p", { class: "words" },
    h("b", {}, `${isOne ? "" : `${one.scenario}: `}${one.variant}, seed ${other.seed}`), ` after ${spoken(seconds(other.at))}: ${other.text}${other.why ? `: ${other.why}` : ""} `,
    h("code", {}, other.again), " ", copyButton(other.again)));
  const n = all.reduce((sum, one) => sum + one.nBroken, 0) - all.filter((one) => one.broken.some((other) => other.seed === one.shown)).length;
  if (n > items.length) items.push(h("p", { class: "dim" }, `and ${n - items.length} more`));
  return [h("details", {}, h("summary", {}, `${counted(n, "other run")} broke: the commands that play them`), ...items)];
}
