// The page of `strew ui` in a real browser: of files, and of an API server that changes, goes away and comes back.

import assert from "node:assert/strict";
import { execFile, execFileSync, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { api, cluster, marked, node, placement, pod, workload, workloadSpread } from "./api.mjs";
import { browser } from "./browser.mjs";

const top = new URL("../../", import.meta.url).pathname;
const folder = `${top}target/web-test`;
const program = process.env.STREW ?? `${top}target/debug/strew`;
const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const ZONE = "topology.kubernetes.io/zone";
const HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>";

const nodes = () => ["a", "b", "c"].map((zone) => node(`n-${zone}`, `zone-${zone}`));
/** `web` is even, `api` is not, a pod of `job` is Pending. */
const objects = () => [...nodes(), ...workload("web", ["n-a", "n-b", "n-c"]), ...workload("api", ["n-a", "n-a", "n-a", "n-b", "n-c"]), ...workload("job", ["n-a", null], { cpu: "7900m" })];
const running = new Set();
let chrome;

before(async () => {
  mkdirSync(folder, { recursive: true });
  chrome = await chromium.launch(browser());
});
after(async () => {
  for (const one of running) one.kill("SIGKILL");
  await chrome?.close();
});

/** Starts `strew ui`; its first line is the address. */
async function serve(...words) {
  const child = spawn(program, ["ui", ...words], { cwd: top, stdio: ["ignore", "pipe", "inherit"] });
  running.add(child);
  let text = "";
  const url = await new Promise((done, fail) => {
    child.stdout.on("data", (part) => { text += part; if (text.includes("\n")) done(text.split("\n")[0]); });
    child.on("exit", (code) => fail(new Error(`strew ui ended with ${code}`)));
  });
  const ended = new Promise((done) => child.on("exit", done));
  return { url, port: new URL(url).port, end: async (signal = "SIGTERM") => { child.kill(signal); running.delete(child); return ended; } };
}

async function serveDump(name, all) {
  const file = `${folder}/${name}.json`;
  writeFileSync(file, JSON.stringify({ apiVersion: "v1", kind: "List", items: all }));
  return { file, ...await serve(file) };
}

async function serveLive(server, ...words) {
  const file = `${folder}/kubeconfig-${server.port}.json`;
  writeFileSync(file, server.kubeconfig());
  return serve("--quiet", "--kubeconfig", file, ...words);
}

/** Opens a page. Every error, dialogue and request to another server fails the test; `quiet`: lost connections do not. */
async function open(url, { quiet = false, hash = "", ...options } = {}) {
  const context = await chrome.newContext({ viewport: { width: 1400, height: 900 }, ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (message) => { if (message.type() === "error" && !quiet) wrong.push(message.text()); });
  page.on("dialog", (dialog) => { wrong.push(dialog.message()); void dialog.dismiss(); });
  page.on("request", (request) => { if (!request.url().startsWith(url)) wrong.push(request.url()); });
  await page.goto(`${url}${hash}`);
  await page.waitForSelector("body[data-ready]");
  return { page, close: async () => { assert.deepEqual(wrong, []); await context.close(); } };
}

const article = (page, name) => page.getByRole("article", { name: `shop/${name}`, exact: true });
const bars = (page, name, by = ZONE) => article(page, name).getByRole("list", { name: `pods by ${by}` }).evaluate((list) => (
  Object.fromEntries([...list.children].map((item) => [item.querySelector(".name").textContent, item.querySelector(".n").firstChild.textContent]))
));
const data = async (url) => (await fetch(`${url}data.json`)).json();

/** Waits until the bars of a workload have these numbers. */
async function until(page, name, wanted) {
  const begin = Date.now();
  for (let found; ;) {
    found = await bars(page, name).catch(() => undefined);
    try { return assert.deepEqual(found, wanted); } catch (error) { if (Date.now() - begin > 20_000) throw error; }
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** The report of the first step; its exit code is 1, since a pod stays Pending. */
const simulated = (file) => new Promise((done) => {
  const words = ["simulate", file, "--until", "deploy", "--seed", "0", "-o", "json"];
  execFile(program, words, { cwd: top, encoding: "utf8", maxBuffer: 1 << 28 }, (_, stdout) => done(stdout));
});

/** A request as no browser sends it; the status of its answer. */
const status = (port, headers, path = "/data.json", method = "GET") => new Promise((done, fail) => {
  request({ host: "127.0.0.1", port, path, method, headers }, (answer) => { answer.resume(); done(answer.statusCode); }).on("error", fail).end();
});

test("a dump is shown as it is, with the numbers of simulate -o json and of data.json", async () => {
  const served = await serveDump("dump", objects());
  const text = await simulated(served.file);
  const step = JSON.parse(text).scenarios[0].variants[0].runs[0].steps[0];
  const { rows } = await data(served.url);
  const { page, close } = await open(served.url);
  for (const one of step.workloads) {
    const name = one.of.split("/")[1], row = rows[`workload Deployment shop/${name}`];
    assert.deepEqual([row.replicas, row.ready], [one.replicas, one.ready], name);
    assert.deepEqual(row.spread.map(({ by, counts, skew }) => ({ by, counts, skew })), one.spread.map(({ by, counts, skew }) => ({ by, counts, skew })), name);
    const zone = row.spread.find((spread) => spread.by === ZONE);
    assert.deepEqual(await bars(page, name), Object.fromEntries(Object.entries(zone.counts).map(([domain, n]) => [domain, String(n)])), name);
    assert.match(await article(page, name).innerText(), new RegExp(`${one.ready} of ${one.replicas} ready`), name);
  }
  assert.equal(step.workloads.length, 3);
  assert.equal(await page.getByRole("article").count(), 3);
  const wrong = await page.getByRole("region", { name: "What is wrong" }).innerText();
  assert.match(wrong, /shop\/api: skew 2 by topology\.kubernetes\.io\/zone, over maxSkew 1 of a hard constraint/);
  assert.match(wrong, /shop\/job: 1 pod Pending \(job-7d9f-1\): 0\/3 nodes are available/);
  assert.match(await page.locator(".verdict").innerText(), /^✗ 2 errors$/);
  // Those with errors come first.
  assert.deepEqual(await page.evaluate(() => window.strew.workloads()), ["Deployment shop/api", "Deployment shop/job", "Deployment shop/web"]);
  await close();
  assert.equal(await served.end(), 0);
});

test("a cluster in which nothing is wrong says so with numbers", async () => {
  const served = await serveDump("well", [...nodes(), ...workload("web", ["n-a", "n-b", "n-c"]), ...workload("log", ["n-a"], { soft: true })]);
  const { page, close } = await open(served.url);
  const text = await page.getByRole("region", { name: "What is wrong" }).innerText();
  assert.match(text, /Nothing is wrong: 4 of 4 pods of 2 workloads ready, 0 Pending; 1 of 1 hard constraint within maxSkew; 1 of 1 soft constraint within maxSkew/);
  await close();
  await served.end();
});

test("a cluster of many nodes is boxes of cells, with the sums of its objects", async () => {
  const REGION = "topology.kubernetes.io/region", names = Array.from({ length: 5001 }, (_, n) => `n-${n}`);
  const many = names.map((name, n) => {
    const one = node(name, `zone-${n % 3}`);
    one.metadata.labels[REGION] = n % 3 ? "eu" : "us";
    return one;
  });
  const served = await serveDump("large", [...many, ...workload("web", names.slice(0, 300)), ...workload("api", ["n-0", "n-3", "n-1", null])]);
  const { rows } = await data(served.url);
  assert.deepEqual(Object.keys(rows).filter((key) => /^(node|pod) /.test(key)), []);
  const { page, close } = await open(served.url);
  await article(page, "web").locator("button.name").click();
  const leaves = rows.heat.boxes.filter(({ path }) => path.length === 2);
  assert.deepEqual(leaves.map(({ path, nodes, pods }) => [path.join(), nodes, pods]), [["eu,zone-1", 1667, 101], ["eu,zone-2", 1667, 100], ["us,zone-0", 1667, 102]]);
  for (const { path, nodes, nodesPerCell, used } of leaves) {
    const text = await page.locator(".box .box", { hasText: path[1] }).innerText().then((text) => text.replaceAll("\u00a0", " "));
    assert.ok(text.includes(`100 web · ${rows.heat.boxes.find((box) => box.path[1] === path[1]).pods} pods · ${nodes.toLocaleString("en-US")} nodes`), text);
    assert.match(text, new RegExp(`a square is ${nodesPerCell} nodes`));
    assert.equal(used.length, Math.ceil(nodes / nodesPerCell));
  }
  assert.match(await page.locator(".map > .boxes > .box", { hasText: "zone-1" }).innerText(), /^eu\s+200 web\s· 201 pods\s· 3,334 nodes/);
  await page.getByText("The same as a table").click();
  const lines = page.getByRole("region", { name: "nodes as a table" }).locator("tbody tr");
  // The table is filled when it is opened, a moment after the click.
  await lines.first().waitFor();
  const cells = await lines.evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
  assert.deepEqual(cells.map((row) => row.slice(-6).map((n) => Number(n.replace(",", "")))), leaves.map((box) => box.byUse));
  await page.evaluate(axe);
  assert.deepEqual((await page.evaluate(() => window.axe.run())).violations.map(({ id }) => id), []);
  await close();
  await served.end();
});

test("a Scenario is shown as simulate --html shows it", async () => {
  const served = await serve("examples/scenarios/rollout.yaml", "--seeds", "2");
  const { page, close } = await open(served.url);
  assert.ok(await page.getByRole("group", { name: "Steps" }).getByRole("button").count() > 1);
  await page.getByRole("slider", { name: "Time" }).focus();
  await close();
  await served.end();
});

test("a live cluster is shown, and a change arrives", async () => {
  const server = await api();
  server.set(...objects());
  const served = await serveLive(server);
  const { page, close } = await open(served.url);
  await until(page, "web", { "zone-a": "1", "zone-b": "1", "zone-c": "1" });
  const [deployment, set, ...pods] = workload("web", ["n-a", "n-b", "n-c", "n-b"]);
  server.set(deployment, set, pods[3]);
  await until(page, "web", { "zone-a": "1", "zone-b": "2", "zone-c": "1" });
  assert.match(await article(page, "web").innerText(), /4 of 4 ready/);
  const { rows } = await data(served.url);
  assert.equal(rows["workload Deployment shop/web"].ready, 4);
  server.remove(pods[1]);
  await until(page, "web", { "zone-a": "1", "zone-b": "1", "zone-c": "1" });
  // What is open and what has the focus stays so over changes.
  await page.getByText("The same as a table").click();
  await article(page, "api").getByRole("button", { name: "shop/api" }).focus();
  server.set(pods[1]);
  await until(page, "web", { "zone-a": "1", "zone-b": "2", "zone-c": "1" });
  assert.match(await page.evaluate(() => document.activeElement.textContent), /shop\/api/);
  assert.ok(await page.getByRole("region", { name: "nodes as a table" }).isVisible());
  await close();
  assert.equal(await served.end(), 0);
  server.close();
});

test("the subsets of a WorkloadSpread are shown, with limit, pods and deletion costs", async () => {
  const server = await api();
  const [deployment, set, ...pods] = workload("web", ["n-a", "n-b", "n-c"]);
  server.set(...nodes(), deployment, set, marked(pods[0], "front", "own", "200"), marked(pods[1], "front", "own", "200"), marked(pods[2], "front", "rest", "100"),
    workloadSpread("front", "web", [["own", 2, 2], ["rest", undefined, 1]]));
  const served = await serveLive(server);
  const { page, close } = await open(served.url);
  const table = article(page, "web").getByRole("region", { name: "subsets of WorkloadSpread shop/front" });
  await table.waitFor();
  assert.deepEqual((await table.locator("tbody tr").allInnerTexts()).map((text) => text.split("\t")), [["own", "2", "2", "2", "0", "0", "0", "200 (2)"], ["rest", "1", "any", "1", "any", "0", "0", "100 (1)"]]);
  const { rows } = await data(served.url);
  assert.equal(rows["ledger WorkloadSpread shop/front"].rows[0].pods, 2);
  await close();
  await served.end();
  server.close();
});

test("the Placements of a hub are shown with their clusters, and what is wrong first", async () => {
  const server = await api();
  server.set(cluster("east-1", "east", "a"), cluster("east-2", "east", "b"), cluster("west-1", "west", "a"), ...placement("even", 2, ["east-1", "west-1"]), ...placement("short", 3, ["east-1", "east-2"]));
  const served = await serveLive(server);
  const { page, close } = await open(served.url);
  await page.getByRole("article", { name: "fleet/short", exact: true }).waitFor();
  assert.match(await page.locator(".verdict").innerText(), /^✗ 1 error$/);
  assert.match(await page.getByRole("region", { name: "What is wrong" }).innerText(), /fleet\/short: 2 of 3 clusters, too few clusters: one is missing/);
  assert.equal(await page.getByRole("region", { name: "Workloads" }).count(), 0, "a hub without workloads");
  const bars = await page.getByRole("article", { name: "fleet/even", exact: true }).getByRole("list", { name: "clusters by region" }).locator("li").allInnerTexts();
  assert.deepEqual(bars.map((text) => text.split("\n")), [["1", "east", "of 2"], ["1", "west", "of 1"]]);
  await page.getByRole("button", { name: "fleet/even" }).click();
  assert.match(await page.getByRole("region", { name: "Where its clusters are" }).innerText(), /east\n+1 chosen\s· 2 other choices\s· 2 clusters/);
  server.set(...placement("short", 3, ["east-1", "east-2", "west-1"]));
  await page.locator(".verdict").getByText("✓ Nothing is wrong").waitFor();
  await close();
  await served.end();
  server.close();
});

test("the slider goes back to what was since the page was opened, and to now", async () => {
  const server = await api();
  server.set(...objects());
  const served = await serveLive(server);
  const { page, close } = await open(served.url);
  await until(page, "web", { "zone-a": "1", "zone-b": "1", "zone-c": "1" });
  const [, , ...pods] = workload("web", ["n-a", "n-b", "n-c", "n-b", "n-b"]);
  server.set(pods[3]);
  await until(page, "web", { "zone-a": "1", "zone-b": "2", "zone-c": "1" });
  server.set(pods[4]);
  await until(page, "web", { "zone-a": "1", "zone-b": "3", "zone-c": "1" });
  const slider = page.getByRole("slider", { name: "Time" });
  await slider.focus();
  await page.keyboard.press("ArrowLeft");
  assert.equal((await bars(page, "web"))["zone-b"], "2");
  assert.match(await page.locator("output").innerText(), /^\d\d:\d\d:\d\d: the past$/);
  await page.keyboard.press("Home");
  assert.equal((await bars(page, "web"))["zone-b"], "1");
  // What happens now does not change the picture of the past.
  server.remove(pods[0]);
  await page.waitForFunction((n) => window.strew.moments() >= n, 3);
  assert.deepEqual(await bars(page, "web"), { "zone-a": "1", "zone-b": "1", "zone-c": "1" });
  await page.getByRole("button", { name: "Back to now" }).click();
  await until(page, "web", { "zone-a": "0", "zone-b": "3", "zone-c": "1" });
  await close();
  await served.end();
  server.close();
});

test("another origin reads the data only if it is named", async () => {
  const { file, end } = await serveDump("named", objects());
  await end();
  const others = await Promise.all([0, 1].map(async () => {
    const server = createServer((_, response) => response.setHeader("content-type", "text/html").end("<!doctype html><p>other"));
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    return { server, origin: `http://127.0.0.1:${server.address().port}` };
  }));
  const served = await serve(file, "--allow-origin", others[0].origin);
  const context = await chrome.newContext();
  for (const [n, { server, origin }] of others.entries()) {
    const page = await context.newPage();
    await page.goto(origin);
    const text = await page.evaluate(async (url) => fetch(`${url}data.json`).then((got) => got.text(), () => "refused"), served.url);
    assert.equal(text.includes("workload Deployment shop/web"), n === 0, origin);
    await page.close();
    server.close();
  }
  await context.close();
  await served.end();
});

test("it reads the kinds that it names and no others, and shows nothing of environments, arguments and annotations", async () => {
  const server = await api();
  server.set(...objects());
  const served = await serveLive(server);
  const { page, close } = await open(served.url);
  await until(page, "job", { "zone-a": "1", "zone-b": "0", "zone-c": "0" });
  const rights = execFileSync(program, ["ui", "--rights"], { encoding: "utf8" });
  const named = [...rights.matchAll(/^\| cluster \| `(\w+)[^`]*` \| list, watch \|/gm)].map((found) => found[1]);
  for (const one of server.asked) {
    assert.match(one, /^GET /);
    const plural = one.split("/").pop();
    if (!["version", "api", "apis"].includes(plural)) assert.ok(named.includes(plural), one);
  }
  assert.ok(named.includes("pods") && !named.includes("secrets") && !named.includes("configmaps"));
  const text = JSON.stringify(await data(served.url)) + await page.content();
  for (const word of ["hunter2", "PASSWORD", "--token", "revision\": \"1"]) assert.ok(!text.includes(word), word);
  await close();
  await served.end();
  server.close();
});

test("many changes are at most five updates a second, and the last one is shown", async () => {
  const server = await api();
  server.set(...objects());
  const served = await serveLive(server);
  const { page, close } = await open(served.url);
  await until(page, "web", { "zone-a": "1", "zone-b": "1", "zone-c": "1" });
  const [, set, first] = workload("web", ["n-a"]);
  const before = await page.evaluate(() => window.strew.draws());
  const begin = Date.now();
  for (let n = 0; n < 300; n++) {
    server.set(pod(`more-${n}`, "n-a", { set, spec: first.spec }));
    await new Promise((done) => setTimeout(done, 10));
  }
  await until(page, "web", { "zone-a": "301", "zone-b": "1", "zone-c": "1" });
  const draws = await page.evaluate(() => window.strew.draws()) - before, seconds = (Date.now() - begin) / 1000;
  assert.ok(draws >= 2 && draws <= 5 * seconds + 2, `${draws} in ${seconds} s`);
  await close();
  await served.end();
  server.close();
});

test("an API server that goes away is told, and nothing is lost when it comes back with another past", async () => {
  const server = await api();
  server.set(...objects());
  const served = await serveLive(server);
  const { page, close } = await open(served.url);
  await until(page, "web", { "zone-a": "1", "zone-b": "1", "zone-c": "1" });
  server.away();
  await page.getByRole("alert").getByText(/The API server cannot be read since \d\d:\d\d:\d\d/).waitFor();
  assert.deepEqual(await bars(page, "web"), { "zone-a": "1", "zone-b": "1", "zone-c": "1" }, "what was known stays");
  const [, , ...pods] = workload("web", ["n-a", "n-b", "n-c", "n-c"]);
  server.remove(pods[0]);
  server.set(pods[3]);
  server.back();
  await until(page, "web", { "zone-a": "0", "zone-b": "1", "zone-c": "2" });
  await page.getByRole("alert").getByText(/The API server cannot be read/).waitFor({ state: "detached", timeout: 60_000 });
  await close();
  await served.end();
  server.close();
});

test("a page whose strew ui ends says since when, and goes on when it is there again", async () => {
  const server = await api();
  server.set(...objects());
  const served = await serveLive(server);
  const { page, close } = await open(served.url, { quiet: true });
  await until(page, "web", { "zone-a": "1", "zone-b": "1", "zone-c": "1" });
  await served.end("SIGKILL");
  await page.getByRole("alert").getByText(/Connection to strew ui lost since \d\d:\d\d:\d\d/).waitFor();
  assert.equal(await page.getByRole("article").count(), 3, "the last picture stays");
  const [, , ...pods] = workload("web", ["n-a", "n-b", "n-c", "n-c"]);
  server.set(pods[3]);
  const again = await serveLive(server, "--port", served.port);
  await until(page, "web", { "zone-a": "1", "zone-b": "1", "zone-c": "2" });
  await page.getByRole("alert").getByText(/lost/).waitFor({ state: "detached" });
  await close();
  await again.end();
  server.close();
});

test("names, labels and messages are text and never markup", async () => {
  const all = [node(`n${HOSTILE}`, `zone${HOSTILE}`), node("n-b", "zone-b"), ...workload("web", [`n${HOSTILE}`, null], { message: `0/2 nodes ${HOSTILE}` })];
  const server = await api();
  server.set(...all);
  const served = await serveLive(server);
  const { page, close } = await open(served.url);
  await article(page, "web").waitFor();
  await page.getByText("The same as a table").click();
  const text = await page.locator("main").innerText();
  assert.ok(text.includes(HOSTILE), text);
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.locator("script").count(), 2);
  await close();
  await served.end();
  server.close();
});

test("the page runs no script but its own, and other sites and names are refused", async () => {
  const served = await serveDump("guarded", objects());
  const answer = await fetch(served.url);
  const policy = answer.headers.get("content-security-policy");
  assert.match(policy, /default-src 'none'; script-src 'self';/);
  assert.ok(!policy.includes("unsafe") && !policy.includes("sha256"), policy);
  const html = await answer.text();
  assert.deepEqual([...html.matchAll(/<script[^>]*>/g)].map((found) => found[0]), ['<script type="application/json" id="data">', '<script type="module" src="script.js">']);
  assert.ok(!/<style|style=|onclick=|onerror=/.test(html));
  const own = { host: `127.0.0.1:${served.port}` };
  assert.equal(await status(served.port, own), 200);
  assert.equal(await status(served.port, { host: "evil.example" }), 403);
  assert.equal(await status(served.port, { ...own, origin: "http://evil.example" }), 403);
  assert.equal(await status(served.port, own, "/data.json", "POST"), 405);
  // A page of another site, in a real browser: neither reads nor frames it.
  const context = await chrome.newContext();
  const page = await context.newPage();
  await page.route("http://evil.example/", (route) => route.fulfill({ contentType: "text/html", body: "<!doctype html><p>evil" }));
  await page.goto("http://evil.example/");
  const read = await page.evaluate(async (url) => {
    const by = async (mode) => fetch(`${url}data.json`, { mode }).then((got) => got.text(), () => "refused");
    const frame = document.createElement("iframe");
    frame.src = url;
    document.body.append(frame);
    await new Promise((done) => { frame.onload = done; setTimeout(done, 3000); });
    return [await by("cors"), await by("no-cors"), String(frame.contentDocument?.body?.innerText ?? "refused")];
  }, served.url);
  assert.ok(read.every((text) => text === "refused" || text === ""), read.join("|"));
  await context.close();
  await served.end();
});

test("everything works by keyboard, and the address shows the same again", async () => {
  const served = await serveDump("keys", objects());
  const { page, close } = await open(served.url);
  const all = "main button, main select, main input, main summary";
  const wanted = await page.locator(all).count();
  const seen = new Set();
  for (let i = 0; i < wanted + 12; i++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate((all) => {
      const element = document.activeElement;
      if (!element.closest("main") || !element.matches("button, select, input, summary")) return null;
      if (getComputedStyle(element).outlineStyle === "none") return "no focus is seen";
      return [...document.querySelectorAll(all)].indexOf(element);
    }, all);
    if (at !== null) seen.add(at);
  }
  assert.ok(!seen.has("no focus is seen"));
  assert.equal(seen.size, wanted);
  await article(page, "web").getByRole("button", { name: "shop/web" }).focus();
  await page.keyboard.press("Enter");
  assert.match(await page.evaluate(() => document.activeElement.textContent), /shop\/web/, "the focus stays");
  const [hash, text] = await page.evaluate(() => [location.hash, document.querySelector("main").innerText]);
  await close();
  const again = await open(served.url, { hash });
  assert.equal(await again.page.evaluate(() => document.querySelector("main").innerText), text);
  await again.close();
  await served.end();
});

for (const options of [{ colorScheme: "light" }, { colorScheme: "dark" }, { forcedColors: "active" }]) {
  test(`axe finds nothing, and nothing is wider than the window: ${JSON.stringify(options)}`, async () => {
    const server = await api();
    server.set(...objects(), node("n-d", "zone-d"));
    const served = await serveLive(server);
    for (const width of [390, 1400]) {
      const { page, close } = await open(served.url, { ...options, viewport: { width, height: 900 } });
      await article(page, "web").waitFor();
      for (const summary of await page.locator("summary:visible").all()) await summary.click();
      // A change, so that the pictures have one.
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run());
      assert.deepEqual(violations.map((one) => `${one.id}: ${one.nodes.map((node) => `${node.target} ${node.failureSummary}`).join("; ")}`), []);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= width);
      if (process.env.SHOTS) await page.screenshot({ path: `${folder}/ui-${width}-${options.colorScheme ?? "forced"}.png`, fullPage: true });
      await close();
    }
    await served.end();
    server.close();
  });
}

test("a hundred pages are told at once", async () => {
  const server = await api();
  server.set(...objects());
  const served = await serveLive(server);
  const controllers = [];
  const streams = await Promise.all(Array.from({ length: 100 }, async () => {
    const controller = new AbortController();
    controllers.push(controller);
    const answer = await fetch(`${served.url}events`, { signal: controller.signal });
    assert.equal(answer.status, 200);
    return answer.body.pipeThrough(new TextDecoderStream()).getReader();
  }));
  const told = streams.map(async (reader) => {
    for (let text = ""; ;) {
      const { value, done } = await reader.read();
      assert.ok(!done, "the stream ended");
      text += value;
      if (text.includes("\"ready\":4,")) return;
    }
  });
  const [deployment, set, ...pods] = workload("web", ["n-a", "n-b", "n-c", "n-b"]);
  server.set(deployment, set, pods[3]);
  await Promise.all(told);
  for (const controller of controllers) controller.abort();
  await served.end();
  server.close();
});
