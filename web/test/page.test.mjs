// The page in a real browser. `cargo xtask web --test` builds the program and runs this.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { browser } from "./browser.mjs";

const top = new URL("../../", import.meta.url).pathname;
const folder = `${top}target/web-test`;
const program = process.env.STREW ?? `${top}target/debug/strew`;
const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

const HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>";
const hostile = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}
---
apiVersion: sim.strew.dev/v1alpha1
kind: Scenario
metadata: {name: s, annotations: {story: "${HOSTILE}"}}
spec:
  nodeGroups: [{name: n, size: 2, template: {status: {allocatable: {cpu: '4', memory: 8Gi, pods: '110'}}}}]
  timeline:
  - {at: 1s, annotate: {deployment/web: "note=${HOSTILE}"}}
  - {at: 5m, expect: [{cel: "'${HOSTILE}' == 'x'"}]}
`;

/** Steps without names have no line of their own in the log. */
const unnamed = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}
---
apiVersion: sim.strew.dev/v1alpha1
kind: Scenario
metadata: {name: s}
spec:
  nodeGroups: [{name: n, size: 2, template: {status: {allocatable: {cpu: '4', memory: 8Gi, pods: '110'}}}}]
  timeline:
  - {at: 5m, scale: {deployment/web: 4}}
  - {at: 10m, scale: {deployment/web: 1}}
  - {at: 15m, expect: [{cel: "true"}]}
`;

const uneven = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web}]
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
`;

const CASES = "crates/strew/tests/cases";

/** Name of the page: command, standard input, exit code. */
const RUNS = {
  shop: ["simulate examples/shop.yaml --nodes 12 --zones 3 --seed 0", "", 0],
  tight: ["simulate examples/tight.yaml --seeds 3", "", 1],
  rollout: ["simulate examples/scenarios/rollout.yaml --seeds 2", "", 0],
  uneven: ["simulate - --nodes 9 --zones 3 --seed 1", uneven, 1],
  unnamed: ["simulate - --seed 1", unnamed, 0],
  hostile: ["simulate -", hostile, 1],
  large: ["simulate examples/shop.yaml --nodes 5001 --zones 3 --seed 0 --until rollout", "", 0],
  many: ["simulate examples/shop.yaml --nodes 60 --zones 3 --seed 0", "", 0],
  audit: [`audit ${CASES}/audit-four-causes/headroom.yaml`, "", 1],
  budget: [`audit ${CASES}/audit-hurts/budget-of-all.yaml`, "", 0],
  deletion: ["simulate scenarios/workloadspread/elastic.yaml", "", 0],
  fleet: ["place examples/placement/fleet.yaml examples/placement/groups.yaml examples/placement/use-case-4.yaml examples/placement/use-case-2.yaml --explain", "", 1],
  lost: ["place examples/placement/fleet.yaml examples/placement/use-case-4.yaml --what-if lose=zone/us-east-1a --explain", "", 0],
  hub: ["simulate scenarios/placement/bounded-regions.yaml --seed 1", "", 0],
  survives: [`audit ${CASES}/audit-survives/nine-with-service.yaml`, "", 0],
};
const reports = {};
let chrome;

before(async () => {
  mkdirSync(folder, { recursive: true });
  for (const [name, [command, input, code]] of Object.entries(RUNS)) {
    const words = [...command.split(" "), "-o", "json", "--html", `${folder}/${name}.html`];
    let text, found = 0;
    try {
      text = execFileSync(program, words, { cwd: top, input, encoding: "utf8", stdio: ["pipe", "pipe", "ignore"], maxBuffer: 1 << 28 });
    } catch (error) {
      text = error.stdout;
      found = error.status;
    }
    assert.equal(found, code, name);
    reports[name] = JSON.parse(text);
  }
  // With the page of web/dist in place of the program's: REFILL=1 node --test test/page.test.mjs
  if (process.env.REFILL) execFileSync("node", [new URL("refill.mjs", import.meta.url).pathname, ...Object.keys(RUNS).map((name) => `${folder}/${name}.html`)]);
  chrome = await chromium.launch(browser());
});
after(() => chrome?.close());

/** Opens a page without a network; every request, error and dialogue fails the test. */
async function open(name, { hash = "", ...options } = {}) {
  const context = await chrome.newContext({ viewport: { width: 1400, height: 900 }, offline: true, ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (message) => { if (message.type() === "error") wrong.push(message.text()); });
  page.on("dialog", (dialog) => { wrong.push(dialog.message()); void dialog.dismiss(); });
  page.on("request", (request) => { if (!request.url().startsWith("file:")) wrong.push(request.url()); });
  await page.goto(`file://${folder}/${name}.html${hash}`);
  await page.waitForSelector("body[data-ready]");
  return { page, close: async () => { assert.deepEqual(wrong, []); await context.close(); } };
}

const run = (name) => reports[name].scenarios[0].variants[0].runs[0];
const workload = (page, name) => page.getByRole("article", { name: `default/${name}`, exact: true });

/** What a workload's bars say: counts by domain, of the rows whose domains are not folded. */
const bars = (page, name, by) => workload(page, name).getByRole("list", { name: `pods by ${by}` }).evaluate((list) => (
  Object.fromEntries([...list.children].map((item) => [item.querySelector(".name").textContent, item.querySelector(".n").firstChild.textContent]))
));

test("the numbers at the end of each step equal the report", async () => {
  const { page, close } = await open("shop");
  const zone = "topology.kubernetes.io/zone";
  for (const step of run("shop").steps) {
    await page.getByRole("group", { name: "Steps" }).getByRole("button", { name: step.name }).click();
    for (const one of step.workloads) {
      const name = one.of.split("/")[1], spread = one.spread.find((spread) => spread.by === zone);
      const article = workload(page, name);
      const text = await article.innerText();
      const wanted = step.losses?.find((loss) => loss.of === one.of)?.wanted ?? one.replicas;
      assert.match(text, new RegExp(`${one.ready} of ${wanted} ready`), `${step.name} ${name}`);
      const pending = one.pending.reduce((n, group) => n + group.count, 0);
      assert.equal(/(\d+) Pending/.exec(text)?.[1] ?? "0", String(pending), `${step.name} ${name}`);
      if (pending) assert.ok(text.includes(one.pending[0].message.split(". ")[0]), text);
      const expected = Object.fromEntries(Object.entries(spread.counts).map(([domain, n]) => [domain, String(n)]));
      assert.deepEqual(await bars(page, name, zone), expected, `${step.name} ${name}`);
      assert.match(text, new RegExp(`zone: .*maxSkew ${spread.constraint.maxSkew}\\. . skew ${spread.skew}, `), `${step.name} ${name}`);
    }
  }
  await close();
});

test("the boxes say what is free at the end of each step", async () => {
  const { page, close } = await open("shop");
  const free = () => page.locator(".box").evaluateAll((all) => all.map((one) => /([\d.]+) of ([\d.]+) CPU free/.exec(one.textContent)?.slice(1, 3).map(Number)));
  const found = [];
  for (const step of run("shop").steps) {
    await page.getByRole("group", { name: "Steps" }).getByRole("button", { name: step.name }).click();
    found.push(await free());
  }
  const milli = (text) => (text.endsWith("m") ? Number(text.slice(0, -1)) : Number(text) * 1000);
  const sum = (kind) => run("shop").steps[0].nodes.reduce((n, node) => n + milli(node[kind].cpu), 0) / 1000;
  const all = (boxes, i) => boxes.reduce((n, one) => n + one[i], 0);
  assert.ok(Math.abs(all(found[0], 0) - (sum("allocatable") - sum("requested"))) < 0.2, JSON.stringify(found[0]));
  assert.equal(all(found[0], 1), sum("allocatable"));
  const lost = run("shop").steps.findIndex((step) => step.name === "lose");
  found.forEach((boxes, s) => assert.equal(boxes.filter((one) => !one).length, s === lost ? 1 : 0, `step ${s}: all but lost boxes`));
  await close();
});

test("a large run is shown as sums, which equal the report, and says so", async () => {
  const { page, close } = await open("large");
  const zone = "topology.kubernetes.io/zone";
  for (const step of run("large").steps) {
    await page.getByRole("group", { name: "Steps" }).getByRole("button", { name: step.name }).click();
    for (const one of step.workloads) {
      const name = one.of.split("/")[1];
      await workload(page, name).getByRole("button", { name, exact: true }).click();
      const place = page.getByRole("region", { name: "Where it is" });
      assert.match(await place.innerText(), new RegExp(`Where ${name} is, at the end of ${step.name}`));
      for (const [domain, n] of Object.entries(one.spread.find((spread) => spread.by === zone).counts)) {
        assert.match(await place.locator(".box").filter({ hasText: domain }).innerText(), new RegExp(`\\b${n} ${name}\\b`), `${step.name} ${name} ${domain}`);
      }
    }
  }
  await page.getByText("This run is too large to be shown pod by pod").waitFor();
  await page.getByText("The same as a table").click();
  const rows = page.getByRole("region", { name: "nodes as a table" }).locator("tbody tr");
  // The table is filled when it is opened, a moment after the click.
  await rows.first().waitFor();
  assert.equal(await rows.count(), 3);
  assert.ok(await page.evaluate(() => window.strew.move(3)) < 200);
  await close();
});

test("steps without names are steps, too", async () => {
  const { page, close } = await open("unnamed");
  const steps = run("unnamed").steps;
  for (let s = 0; s < steps.length; s++) {
    await page.getByRole("group", { name: "Steps" }).getByRole("button").nth(s).click();
    assert.equal(await page.locator("[aria-current=step]").count(), 1);
    const { replicas, ready } = steps[s].workloads[0];
    assert.match(await workload(page, "web").innerText(), new RegExp(`${ready} of ${replicas} ready`), `step ${s + 1}`);
  }
  await close();
});

test("the map has the pods of the report, and the table says the same", async () => {
  const { page, close } = await open("shop");
  await page.getByRole("group", { name: "Steps" }).getByRole("button", { name: "deploy" }).click();
  await page.getByText("The same as a table").click();
  const counts = run("shop").steps[0].workloads[0].spread[0].counts;
  const found = {};
  const rows = page.getByRole("region", { name: "nodes as a table" }).locator("tbody tr");
  // The table is filled when it is opened, a moment after the click.
  await rows.first().waitFor();
  for (const row of await rows.all()) {
    const [nodes, zone, ready] = await row.locator("th, td").allInnerTexts();
    const more = / and (\d+) more$/.exec(nodes);
    const n = more ? 3 + Number(more[1]) : nodes.split(", ").length;
    found[zone] = (found[zone] ?? 0) + n * Number(ready);
  }
  assert.deepEqual(found, counts);
  for (const [zone, n] of Object.entries(counts)) {
    const box = page.locator(".box", { has: page.getByRole("heading", { name: zone }) });
    assert.match(await box.innerText(), new RegExp(`\\n${n} web`), zone);
  }
  await close();
});

test("a red page opens at its first breach, before the next step, and says what is wrong first", async () => {
  const { page, close } = await open("tight");
  const first = run("tight").steps.findIndex((step) => step.verdict === "broken");
  const step = run("tight").steps[first];
  const current = page.getByRole("group", { name: "Steps" }).locator("[aria-current=step]");
  assert.match(await current.innerText(), new RegExp(step.name));
  assert.match(await page.locator(".verdict").innerText(), /✗ .*broke in 3 of 3 runs/);
  const wrong = page.getByRole("region", { name: "What is wrong" });
  assert.ok((await wrong.boundingBox()).y < 450, "on the first screen");
  const texts = await wrong.locator(".finding").allInnerTexts();
  assert.equal(texts.length, reports.tight.findings.filter((one) => one.severity !== "note").length);
  for (const one of step.workloads) {
    const pending = one.pending.reduce((n, group) => n + group.count, 0);
    assert.equal(/(\d+) Pending/.exec(await workload(page, one.of.split("/")[1]).innerText())?.[1] ?? "0", String(pending), one.of);
  }
  // Fewer domains than minDomains: the minimum counts as 0.
  assert.match(await workload(page, "cache").innerText(), /counts as 0 with 2 domains, a domain may have 1 at most/);
  await close();
});

test("what a claim failed by and a finding says is said once, with what would help", async () => {
  const { page, close } = await open("uneven");
  const found = page.getByRole("region", { name: "What is wrong" }).locator(".finding");
  const texts = await found.allInnerTexts();
  assert.equal(texts.length, reports.uneven.findings.filter((one) => one.severity !== "note").length);
  assert.match(texts[0], /^✗\s*rollout: deployment\/web ends at skew 2 over maxSkew 1 .*\s*help: matchLabelKeys/);
  await close();
});

test("a page with nothing wrong says so with numbers", async () => {
  const { page, close } = await open("rollout");
  const text = await page.getByRole("region", { name: "What is wrong" }).innerText();
  const { summary, findings } = reports.rollout;
  if (!findings.some((one) => one.severity !== "note")) {
    const { seeds } = reports.rollout.scenarios[0].variants[0];
    assert.match(text, new RegExp(`Nothing is wrong: .* held in ${seeds.length} of ${seeds.length} seeds`));
    assert.match(await page.locator(".verdict").innerText(), new RegExp(`^✓ as expected: ${summary.held} held, ${summary.broken} broke as they must or may$`));
  }
  await close();
});

test("all variants and seeds stand side by side, and each variant can be opened", async () => {
  const { page, close } = await open("rollout");
  const { variants } = reports.rollout.scenarios[0];
  const table = page.getByRole("region", { name: "Variants and seeds" });
  assert.equal(await table.locator("tbody tr").count(), variants.length);
  for (const one of variants) {
    const row = table.locator("tbody tr", { has: page.getByRole("button", { name: one.name, exact: true }) });
    assert.match(await row.innerText(), one.broken ? new RegExp(`broke in ${one.broken} of ${one.seeds.length} seeds`) : new RegExp(`held in ${one.seeds.length} of ${one.seeds.length} seeds`), one.name);
    assert.equal(await row.locator(".seeds i").count(), one.seeds.length, one.name);
    assert.equal(await row.locator(".seeds .broke").count(), one.broken, one.name);
    assert.equal(await row.locator(".seeds .shown").count(), 1, one.name);
  }
  await table.getByRole("button", { name: variants[1].name, exact: true }).click();
  assert.match(await page.evaluate(() => location.hash), /run=1/);
  assert.equal(await table.getByRole("button", { name: variants[1].name, exact: true }).getAttribute("aria-pressed"), "true");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), variants[1].name, "the focus stays");
  await close();
});

test("broken seeds that are not shown have the command that plays them", async () => {
  const { page, close } = await open("tight");
  const table = page.getByRole("region", { name: "Variants and seeds" });
  assert.match(await table.locator("tbody tr").innerText(), /✗ broke in 3 of 3 seeds/);
  await table.getByText("2 other runs broke").click();
  const commands = await table.locator("code").allInnerTexts();
  assert.equal(commands.length, 2);
  assert.match(commands[1], /^strew simulate examples\/tight.yaml --seed 2 --until /);
  await close();
});

test("why a pod is Pending has the numbers of explain -o json, by the command that it shows", async () => {
  const { page, close } = await open("tight");
  const box = page.getByRole("region", { name: "Why it is Pending" });
  const command = await box.locator("code").innerText();
  const words = command.split(" ");
  assert.equal(words[0], "strew");
  const text = execFileSync(program, [...words.slice(1), "-o", "json"], { cwd: top, encoding: "utf8", stdio: ["pipe", "pipe", "ignore"] });
  const explained = JSON.parse(text);
  const one = explained.metadata ? explained : explained.items[0];
  const said = await box.innerText();
  assert.ok(said.toUpperCase().includes(one.metadata.name.toUpperCase()), said);
  assert.ok(said.includes(one.summary ?? one.message), said);
  const zone = one.constraints.hard[0];
  const rows = (await box.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => [...cell.childNodes].filter((one) => one.className !== "narrow").map((one) => one.textContent).join(""))))).slice(0, zone.domains.length);
  assert.deepEqual(rows.map((cells) => cells.slice(0, 3)), zone.domains.map(({ value, pods, skew }) => [value, String(pods), skew?.shortSum ?? "-"]));
  zone.domains.forEach(({ skew }, i) => { if (skew && !skew.allowed) assert.match(rows[i][3], /over maxSkew/); });
  await close();
});

test("a WorkloadSpread's subsets are on the page", async () => {
  const { page, close } = await open("deletion");
  const table = page.getByRole("region", { name: /^subsets of WorkloadSpread/ }).first();
  await table.waitFor();
  assert.ok(await table.locator("tbody tr").count() >= 2);
  const cells = await table.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [row.cells[0].firstChild.textContent, row.cells[1].lastChild.textContent, row.cells[2].lastChild.textContent]));
  const bars = await page.getByRole("list", { name: /^pods by subset/ }).first().locator("li").evaluateAll((all) => all.map((one) => (
    [one.querySelector(".name").textContent, one.querySelector(".n").firstChild.textContent, /^limit (\d+)/.exec(one.querySelector(".note").textContent)?.[1] ?? "any", one.querySelectorAll(".line.limit").length])));
  assert.deepEqual(bars, cells.map(([name, pods, limit]) => [name, pods, limit, limit === "any" ? 0 : 1]));
  await close();
});

const decided = (name) => Object.fromEntries(reports[name].items.map((one) => [`${one.placement.metadata.namespace}/${one.placement.metadata.name}`, one]));

test("a hub that is simulated has the clusters of its Placement at the end of each step", async () => {
  const { page, close } = await open("hub");
  // What the scenario expects of its steps, and the run has held.
  const clusters = { "1 s": [4, { asia: 2, eu: 0, us: 2 }], "1 m": [3, { asia: 2, eu: 0, us: 1 }], "2 m": [3, { asia: 2, eu: 1 }], "3 m": [2, { asia: 2 }] };
  const article = page.getByRole("article", { name: "default/two-regions", exact: true });
  const steps = page.getByRole("group", { name: "Steps" }).getByRole("button");
  assert.equal(await steps.count(), Object.keys(clusters).length);
  for (const [at, [n, counts]] of Object.entries(clusters)) {
    await steps.filter({ hasText: `at ${at}` }).click();
    assert.match(await article.locator(".num").first().innerText(), new RegExp(`^${n} of 4 clusters$`), at);
    const bars = await article.getByRole("list", { name: "clusters by region" }).evaluate((list) => (
      Object.fromEntries([...list.children].map((item) => [item.querySelector(".name").textContent, Number(item.querySelector(".n").firstChild.textContent)]))
    ));
    assert.deepEqual(bars, counts, at);
  }
  const text = await page.locator("main").innerText();
  assert.doesNotMatch(text, /0 workloads|no workload|0 nodes/);
  assert.match(text, /Clusters that two-regions chose/);
  assert.match(text, /All steps held: 4 steps held.*0 of 1 Placement as asked for/);
  await close();
});

test("a fleet has the clusters and the counts of place -o json", async () => {
  const { page, close } = await open("fleet");
  const all = decided("fleet");
  assert.equal(await page.getByRole("article").count(), Object.keys(all).length);
  assert.match(await page.locator(".verdict").innerText(), /^✗ 1 uneven$/);
  for (const [name, one] of Object.entries(all)) {
    const article = page.getByRole("article", { name, exact: true });
    await article.locator("button.name").click();
    const terms = one.placement.spec.spreadPolicy.spreadConstraints;
    for (const [depth, term] of terms.entries()) {
      const bars = article.getByRole("list", { name: `clusters by ${term.topologyKey}` }).locator("li");
      const wanted = one.topologies.filter(({ topology }) => topology.length === depth + 1);
      const counts = await bars.locator(".n").evaluateAll((all) => all.map((one) => Number(one.firstChild.textContent)));
      assert.deepEqual(counts, wanted.map(({ selected }) => selected), `${name} ${term.topologyKey}`);
    }
    const chosen = await page.evaluate(() => window.strew.chosen());
    assert.equal(chosen, name);
    await page.getByText("The same as a table").click();
    const table = page.getByRole("region", { name: "clusters as a table" });
    await table.locator("tbody tr").first().waitFor();
    const sum = await table.locator("tbody tr").evaluateAll((rows, at) => rows.reduce((sum, row) => {
      const names = row.cells[0].textContent, more = / and (\d+) more$/.exec(names);
      return sum + (more ? 3 + Number(more[1]) : names.split(", ").length) * Number(row.cells[at].textContent);
    }, 0), terms.length + 1);
    assert.equal(sum, one.selectedClusters.length, name);
    await page.getByText("The same as a table").click();
  }
  await close();
});

test("a fleet's bars have lines at the minimum and at minimum + maxSkew, and the numbers in words", async () => {
  const { page, close } = await open("fleet");
  const [{ topologyKey, maxSkew = 1 }] = decided("fleet")["default/groups"].placement.spec.spreadPolicy.spreadConstraints;
  const article = page.getByRole("article", { name: "default/groups", exact: true }), text = await article.innerText();
  const [, count, minimum] = /region=us-east has (\d+), minimum (\d+)/.exec(text).map(Number);
  assert.ok(text.includes(`! skew ${count - minimum}, over maxSkew ${maxSkew}: minimum ${minimum}, a topology should have ${minimum + maxSkew} at most`), text);
  const bars = article.getByRole("list", { name: `clusters by ${topologyKey}` }).locator("li");
  const lines = (of) => bars.filter({ hasText: of }).locator(".line").evaluateAll((all) => all.map((one) => parseFloat(one.style.bottom)));
  const [least, limit] = await lines("us-east"), most = 44;
  assert.deepEqual([least, limit], [minimum, minimum + maxSkew].map((n) => (n / count) * most));
  assert.deepEqual(await lines("us-west"), [], "maxGroups leaves it out");
  assert.match(await bars.filter({ hasText: "us-east" }).locator(".n").innerText(), /over the limit/);
  await close();
});

test("a fleet after a loss says what moves", async () => {
  const { page, close } = await open("lost");
  const [change] = reports.lost.changes;
  const text = await page.getByRole("article").first().innerText();
  assert.ok(text.includes(`${change.gone.length} gone, ${change.new.length} new, ${change.stay.length} stay`), text);
  for (const one of [...change.gone, ...change.new]) assert.ok(text.includes(one.clusterName), one.clusterName);
  assert.match(await page.locator("header").innerText(), /What if zone=us-east-1a is lost/);
  await close();
});

test("everything works by keyboard, and the address shows the same again", async () => {
  const { page, close } = await open("shop");
  const slider = page.getByRole("slider", { name: "Time" });
  await slider.focus();
  await page.keyboard.press("Home");
  const marks = [];
  for (let last = ""; ;) {
    const now = await slider.getAttribute("aria-valuetext");
    if (now === last) break;
    marks.push((last = now));
    await page.keyboard.press("ArrowRight");
  }
  for (const step of run("shop").steps) assert.ok(marks.some((mark) => mark.endsWith(`, ${step.name}`)), `${step.name}: ${marks}`);
  await page.keyboard.press("ArrowLeft");
  assert.notEqual(await slider.getAttribute("aria-valuetext"), marks.at(-1));
  // Every button and choice is reached with Tab, with a visible focus, and Enter works.
  const wanted = await page.locator("main button, main select, main input, main summary").count();
  const seen = new Set();
  await page.evaluate(() => document.activeElement.blur());
  for (let i = 0; i < wanted + 12; i++) {
    await page.keyboard.press("Tab");
    const label = await page.evaluate(() => {
      const element = document.activeElement;
      if (!element.closest("main") || !element.matches("button, select, input, summary")) return null;
      if (getComputedStyle(element).outlineStyle === "none") return "no focus is seen";
      return [...document.querySelectorAll("main button, main select, main input, main summary")].indexOf(element);
    });
    if (label !== null) seen.add(label);
  }
  assert.ok(!seen.has("no focus is seen"));
  assert.equal(seen.size, wanted);
  await workload(page, "api").getByRole("button", { name: "api" }).focus();
  await page.keyboard.press("Enter");
  assert.match(await page.evaluate(() => document.activeElement.textContent), /api/, "the focus stays");
  const [hash, text] = await page.evaluate(() => [location.hash, document.querySelector("main").innerText]);
  await close();
  const again = await open("shop", { hash });
  assert.equal(await again.page.evaluate(() => document.querySelector("main").innerText), text);
  await again.close();
});

test("Show goes to the moment and the workload of a finding", async () => {
  const { page, close } = await open("shop");
  await page.getByRole("button", { name: /Show: scale: deployment\/web/ }).click();
  assert.match(await page.locator("output").innerText(), /scale$/);
  assert.equal(await workload(page, "web").getByRole("button", { name: "web" }).getAttribute("aria-pressed"), "true");
  await close();
});

for (const options of [{ colorScheme: "light" }, { colorScheme: "dark" }, { forcedColors: "active" }]) {
  test(`axe finds nothing: ${JSON.stringify(options)}`, async () => {
    for (const name of ["shop", "tight", "large", "rollout", "deletion", "fleet", "lost", "audit", "budget"]) {
      // Its text comes by the debugger: the page allows no script but its own.
      const { page, close } = await open(name, options);
      for (const summary of await page.locator("summary:visible").all()) await summary.click();
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run());
      const told = violations.map((one) => `${one.id}: ${one.nodes.map((node) => `${node.target} ${node.failureSummary}`).join("; ")}`);
      assert.deepEqual(told, [], name);
      await close();
    }
  });
}

test("nothing is wider than the window, from 320 to 2560 pixels", async () => {
  for (const width of [320, 390, 700, 1400, 2560]) {
    for (const name of ["shop", "tight", "large", "rollout", "hostile", "deletion", "fleet", "audit", "budget"]) {
      const { page, close } = await open(name, { viewport: { width, height: 900 } });
      const [wide, cut] = await page.evaluate(() => [
        document.documentElement.scrollWidth,
        [...document.querySelectorAll("main *, header *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1
          && !one.closest(".scroll, .sr, ol")).map((one) => `${one.tagName}.${one.className}`),
      ]);
      assert.ok(wide <= width, `${name} at ${width}: ${wide}`);
      assert.deepEqual(cut, [], `${name} at ${width}`);
      await close();
    }
  }
});

test("names are text and never markup", async () => {
  const { page, close } = await open("hostile");
  assert.equal(reports.hostile.scenarios[0].story, HOSTILE);
  assert.equal(await page.locator(".story").innerText(), HOSTILE);
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.locator("script").count(), 2);
  assert.ok((await page.getByRole("region", { name: "What is wrong" }).innerText()).includes("<img"));
  await close();
});

test("an injected script does not run", async () => {
  const path = `${folder}/injected.html`;
  const plain = readFileSync(`${folder}/shop.html`, "utf8");
  writeFileSync(path, plain.replace("<div id=\"page\">", "<script>document.title = 'injected'</script><div id=\"page\">"));
  const context = await chrome.newContext();
  const page = await context.newPage();
  await page.goto(`file://${path}`);
  await page.waitForSelector("body[data-ready]");
  assert.notEqual(await page.title(), "injected");
  await context.close();
});

test("terminating pods are hatched in small cells, too", async () => {
  const { page, close } = await open("many");
  const lost = run("many").steps.find((step) => step.name === "lose");
  await page.getByRole("group", { name: "Steps" }).getByRole("button", { name: new RegExp(`lose ${lost.chosen[0]}`) }).click();
  await workload(page, "db").getByRole("button", { name: "db" }).click();
  const leaving = await page.evaluate(() => window.strew.pods().filter((pod) => pod.workload.endsWith("/db") && pod.state.isTerminating).length);
  assert.ok(leaving > 0, "a pod of db is terminating on the lost zone");
  const filled = await page.locator(".box.lost canvas").evaluate((canvas) => {
    const probe = document.createElement("canvas").getContext("2d");
    probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--ready");
    probe.fillRect(0, 0, 1, 1);
    const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let n = 0;
    for (let i = 0; i < data.length; i += 4) if (data[i] === r && data[i + 1] === g && data[i + 2] === b && data[i + 3] === 255) n += 1;
    return n;
  });
  // A filled cell has 169 pixels of this colour.
  assert.ok(filled > 20 && filled < 120 * leaving, `${filled} pixels for ${leaving} pods`);
  await close();
});

const cellsOf = (page) => page.getByRole("grid").locator("td[data-cell]");
const ofRow = (row) => `${row.namespace === "default" ? "" : `${row.namespace}/`}${row.kind.toLowerCase()}/${row.name}`;

for (const name of ["audit", "budget", "survives"]) {
  test(`each cell of ${name} has the numbers of the JSON`, async () => {
    const { page, close } = await open(name);
    for (const button of await page.getByRole("region", { name: "What survives" }).getByRole("button", { name: "Show" }).all()) await button.click();
    let n = 0;
    for (const one of reports[name].cases) {
      for (const row of one.workloads) {
        const cell = page.locator(`td[data-cell="${one.event} ${one.domains.join(",")} ${ofRow(row)}"]`);
        const label = await cell.locator(".sr").textContent();
        const blocked = (one.blocked ?? []).find((other) => other.object === ofRow(row));
        assert.ok(label.includes(`${one.event} of ${one.domains.join(" and ")}: ${row.verdict}, ${row.sum}`), label);
        await cell.click();
        const panel = page.getByRole("region", { name: "The chosen cell" });
        const text = await panel.innerText();
        assert.ok(text.includes(`${row.verdict}: ${row.sum}`), text);
        if (row.cause) assert.ok(text.includes(row.cause.text), text);
        if (blocked) assert.ok(text.includes(blocked.why) && (await cell.innerText()).includes("stuck"), text);
        const numbers = Object.fromEntries(await panel.locator("tr").evaluateAll((rows) => rows.map((row) => [row.cells[0].textContent, row.cells[1].textContent])));
        assert.equal(numbers["ready before"], `${row.before} of ${row.wanted}`);
        assert.equal(numbers["fewest on the way"], String(row.fewest));
        assert.match(numbers["at rest"], new RegExp(`^${row.ready} of ${row.wanted}`));
        assert.equal(numbers["at once"], `${row.before} − ${row.before - row.atOnce} = ${row.atOnce}`);
        n += 1;
      }
    }
    assert.equal(n, await cellsOf(page).count());
    await close();
  });
}

test("an audit says what is wrong first, the worst first, and Show goes to its cell", async () => {
  const { page, close } = await open("audit");
  assert.match(await page.locator(".verdict").innerText(), /^✗ 1 LOST, 1 DEGRADED$/);
  assert.match(await page.title(), /^✗ audit of headroom.yaml$/);
  const wrong = page.getByRole("region", { name: "What is wrong" });
  assert.ok((await wrong.boundingBox()).y < 200);
  const first = wrong.locator(".finding").first();
  assert.match(await first.innerText(), /shop\/web Deployment LOST by loss, shift \(some seeds\), drain of zone-a: 0 of 3/);
  assert.match(await first.innerText(), /fix: .*LOST becomes SURVIVES/);
  await wrong.getByRole("button", { name: /Show shop\/batch/ }).click();
  assert.match(await page.getByRole("region", { name: "The chosen cell" }).innerText(), /^shop\/batch, /);
  assert.match(await page.evaluate(() => decodeURIComponent(location.hash)), /cell=\w+\+zone-\w\+shop\/deployment\/batch/);
  await close();
});

test("an audit without a loss says so with numbers", async () => {
  const { page, close } = await open("survives");
  assert.match(await page.locator(".verdict").innerText(), /^✓ nothing is lost$/);
  assert.match(await page.getByRole("region", { name: "What is wrong" }).innerText(), /Nothing is lost: 1 of 1 workload survives each loss, shift and drain of zone-a, zone-b, zone-c/);
  await close();
});

test("the matrix works by keyboard, and the address shows the same again", async () => {
  const { page, close } = await open("audit");
  await page.locator("td[data-cell][tabindex='0']").focus();
  const chosen = () => page.locator("td[aria-selected=true]").getAttribute("data-cell");
  const seen = new Set([await chosen()]);
  for (const key of ["Home", "PageUp", ...Array(8).fill("ArrowRight"), "ArrowDown", ...Array(8).fill("ArrowLeft")]) {
    await page.keyboard.press(key);
    assert.equal(await page.evaluate(() => document.activeElement.dataset.cell), await chosen(), key);
    assert.equal(await page.locator("td[data-cell][tabindex='0']").count(), 1, key);
    seen.add(await chosen());
  }
  assert.equal(seen.size, await cellsOf(page).count(), "every cell is reached");
  assert.notEqual(await page.evaluate(() => getComputedStyle(document.activeElement.querySelector(".c")).outlineStyle), "none");
  await page.keyboard.press("End");
  const [hash, text] = await page.evaluate(() => [location.hash, document.querySelector("main").innerText]);
  await close();
  const again = await open("audit", { hash });
  assert.equal(await again.page.evaluate(() => document.querySelector("main").innerText), text);
  await again.close();
});

test("what survives is one line until it is asked for", async () => {
  const { page, close } = await open("survives");
  await page.getByRole("region", { name: "What survives" }).getByRole("button", { name: "Hide" }).click();
  assert.equal(await cellsOf(page).count(), 0);
  await page.getByRole("region", { name: "What survives" }).getByRole("button", { name: "Show" }).click();
  assert.equal(await cellsOf(page).count(), 9);
  await close();
});

test("names in an audit are text and never markup", async () => {
  const nasty = (value) => {
    if (Array.isArray(value)) return value.map(nasty);
    if (value === null || typeof value !== "object") return value;
    const names = ["name", "namespace", "text", "sum", "why", "object", "of", "change", "cluster", "domains", "code"];
    return Object.fromEntries(Object.entries(value).map(([field, one]) => [field, !names.includes(field) ? nasty(one)
      : Array.isArray(one) ? one.map((each) => typeof each === "string" ? `${each}${HOSTILE}` : nasty(each)) : typeof one === "string" ? `${one}${HOSTILE}` : nasty(one)]));
  };
  const [head, json, tail] = readFileSync(`${folder}/audit.html`, "utf8").split(/(?<=id="data">)([^<]*)/);
  const data = JSON.parse(json);
  data.report = nasty(data.report);
  data.files = [HOSTILE];
  writeFileSync(`${folder}/nasty.html`, [head, JSON.stringify(data).replaceAll("<", "\\u003c"), tail].join(""));
  const { page, close } = await open("nasty");
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.locator("script").count(), 2);
  assert.ok((await page.getByRole("region", { name: "What is wrong" }).innerText()).includes("<img"));
  assert.ok((await page.getByRole("region", { name: "The chosen cell" }).innerText()).includes("<img"));
  const [wide, cut] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= cut, `${wide}`);
  await close();
});
