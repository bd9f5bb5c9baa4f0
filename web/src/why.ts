// Why a pod is Pending: what the scheduler counts for each domain, and the command that says the rest.

import { short } from "./bars.ts";
import { copyButton, counted, h } from "./dom.ts";
import type { Frame, Run } from "./run.ts";
import type { Domain, ExplainedConstraint, Explanation } from "./types.ts";

/** The explanation of a Pending pod of a workload at the end of a step; nothing if there is none. */
export function draw(run: Run, of: string, frame: Frame): HTMLElement[] {
  const found = run.why(of, frame);
  if (!found) return [];
  const { namespace, name } = found.metadata;
  const words = [run.head.replay?.split(" ")[0] ?? "strew", "explain", `pod/${name}`, namespace === "default" ? "" : `-n ${namespace}`, run.explain, `--at ${run.step(frame)!.ended}`];
  const command = words.filter(Boolean).join(" ");
  return [h("h2", {}, `Why is ${name} Pending?`),
    h("p", {}, found.summary ?? found.message),
    ...tables(found),
    h("p", { class: "dim quiet" }, found.summary ? found.message : ""),
    h("p", { class: "quiet" }, h("code", {}, command), " ", copyButton(command))];
}

function tables({ constraints, domainsLeftOut }: Explanation): HTMLElement[] {
  return constraints.hard.map((one, i) => table(one, domainsLeftOut[i] ?? 0));
}

function table(one: ExplainedConstraint, leftOut: number): HTMLElement {
  const heads = [short(one.topologyKey), "pods", "skew with this pod", "verdict"];
  const row = (domain: Domain) => h("tr", {},
    h("th", { scope: "row" }, domain.value),
    ...[domain.pods, domain.skew?.shortSum ?? "-"].map((cell, i) => h("td", { class: "num" }, h("small", { class: "narrow" }, heads[i + 1]), cell)),
    h("td", {}, verdict(domain)));
  return h("div", { class: "scroll quiet", tabindex: 0, role: "region", "aria-label": `what is counted by ${short(one.topologyKey)}` },
    h("table", { class: "plain stacked why" }, h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, ...one.domains.map(row))),
    leftOut > 0 && h("p", { class: "dim" }, `and ${leftOut} more`));
}

/** Whether the constraint lets the pod in, and what else keeps it off. */
function verdict(domain: Domain): HTMLElement {
  const others = (domain.otherReasons ?? []).map(({ reason, nodes }) => (
    reason.startsWith("node(s) ") ? `${counted(nodes, "node")} ${reason.slice(8)}` : `${counted(nodes, "node")}: ${reason}`));
  const skew = domain.skew;
  const own = !domain.eligibleNodes ? h("span", { class: "dim" }, "does not count")
    : skew && !skew.allowed ? h("span", { class: "tag bad" }, `✗ over maxSkew ${skew.maxSkew}`)
    : h("span", { class: `tag ${domain.openNodes ? "ok" : "dim"}` }, domain.openNodes ? "✓" : "no node:");
  return h("span", {}, own, others.length > 0 && h("span", { class: "dim" }, ` ${others.join("; ")}`));
}
