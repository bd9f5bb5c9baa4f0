// The page in which strew runs, in a real browser. `cargo xtask play --test` builds it, and the program that it is compared with.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { browser } from "./browser.mjs";

const top = new URL("../../", import.meta.url).pathname;
const address = process.env.PLAY ?? `file://${top}target/play/index.html`;
const program = process.env.STREW ?? `${top}target/debug/strew`;
const folder = `${top}target/play-test`;
const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const example = (name) => readFileSync(`${top}examples/${name}`, "utf8");

const HOSTILE = "<img src=x onerror=alert(1)>.yaml";
const [SHOP, TIGHT, ROLLOUT] = [["shop.yaml", example("shop.yaml")], ["tight.yaml", example("tight.yaml")], ["rollout.yaml", example("scenarios/rollout.yaml")]];
const FLEET = [["use-case-4.yaml", example("placement/use-case-4.yaml")], ["fleet.yaml", example("placement/fleet.yaml")]];
const uneven = ["shop.yaml", SHOP[1].replace("matchLabelKeys", "# matchLabelKeys")];
const wrong = ["folder/wrong.yaml", SHOP[1].replace("maxSkew", "maxSkwe")];
const hostile = [HOSTILE, SHOP[1].replace("name: web", "name: '<script>alert(1)</script>'")];

let chrome;
before(async () => { chrome = await chromium.launch(browser()); });
after(() => chrome?.close());

/** Opens the page without a network; every request, error and dialogue fails the test. */
async function open({ hash = "", ...options } = {}) {
  const context = await chrome.newContext({ viewport: { width: 1400, height: 900 }, offline: true, ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (message) => { if (message.type() === "error") wrong.push(message.text()); });
  page.on("dialog", (dialog) => { wrong.push(dialog.message()); void dialog.dismiss(); });
  page.on("request", (request) => { if (!/^(file|blob|data):/.test(request.url())) wrong.push(request.url()); });
  await page.goto(address + hash);
  await rest(page);
  return { page, context, close: async () => { assert.deepEqual(wrong, []); await context.close(); } };
}
const rest = (page) => page.waitForSelector("body[data-state=rest]", { timeout: 60_000 });

/** The fragment of a link, made apart from the page's code. */
async function link(command, files) {
  const packed = new Blob([JSON.stringify([command, ...files])]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return `#v1=${Buffer.from(await new Response(packed).arrayBuffer()).toString("base64url")}`;
}

/** What this machine's program writes about the same files. */
function here(command, files, more = {}) {
  rmSync(folder, { recursive: true, force: true });
  for (const [name, text] of files) {
    const path = `${folder}/${name}`;
    mkdirSync(path.slice(0, path.lastIndexOf("/")), { recursive: true });
    writeFileSync(path, text);
  }
  const environment = { PATH: process.env.PATH, LC_ALL: "C.UTF-8", ...more };
  const { stdout, stderr, status } = spawnSync(program, command.split(" "), { cwd: folder, encoding: "utf8", env: environment, maxBuffer: 1 << 28 });
  return { stdout, stderr, status };
}

async function saved(page, label) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: label, exact: true }).click()]);
  return readFileSync(await download.path(), "utf8");
}

test("the first answer is there within a second of loading", async () => {
  const took = [];
  for (let n = 0; n < 3; n += 1) {
    const { page, close } = await open();
    took.push(await page.evaluate(() => Number(document.body.dataset.first)));
    await close();
  }
  console.log(`first answers after ${took.join(", ")} ms`);
  if (process.env.PLAY_UNTIMED === undefined) assert.ok(Math.min(...took) <= 1000, String(took));
});

const SAME = [
  ["simulate shop.yaml", [SHOP]],
  ["simulate shop.yaml --nodes 30 --seed 3", [SHOP]],
  ["simulate tight.yaml", [TIGHT]],
  // There is one thread, whatever is asked for.
  ["simulate shop.yaml --seeds 3 --jobs 4", [SHOP]],
  ["snapshot tight.yaml --anonymize", [TIGHT]],
  ["simulate rollout.yaml --seeds 3", [ROLLOUT]],
  ["lint shop.yaml", [uneven]],
  ["lint folder", [wrong]],
  ["audit tight.yaml", [TIGHT]],
  ["explain deployment/web tight.yaml", [TIGHT]],
  ["place use-case-4.yaml fleet.yaml", FLEET],
  ["simulate folder/wrong.yaml", [wrong]],
];
for (const [command, files] of SAME) {
  test(`${command}: the bytes of the command line`, async () => {
    const { page, close } = await open({ hash: await link(command, files) });
    const expected = here(`${command} -o json`, files);
    assert.equal(await saved(page, "Save as JSON"), expected.stdout);
    assert.notEqual(expected.stdout, "");
    await rest(page);
    assert.match(await page.getByRole("status").textContent(), new RegExp(`^exit code ${expected.status}:`));
    await close();
  });
}

for (const [command, files] of [["explain deployment/web tight.yaml", [TIGHT]], ["lint shop.yaml", [uneven]], ["audit shop.yaml", [SHOP]]]) {
  test(`${command}: the text is what a terminal shows`, async () => {
    const { page, close } = await open({ hash: await link(command, files) });
    const expected = here(command, files, { COLUMNS: await page.evaluate(() => document.body.dataset.columns) });
    assert.equal(await saved(page, "Save the text"), expected.stdout);
    assert.ok((await page.getByRole("region", { name: "What strew says" }).textContent()).includes(expected.stdout));
    await close();
  });
}

test("the picture is the page of --html, and works in its frame", async () => {
  const { page, close } = await open();
  const frame = page.frameLocator("iframe");
  await frame.getByRole("article", { name: "default/web", exact: true }).waitFor();
  await frame.getByRole("group", { name: "Steps" }).getByRole("button", { name: "lose" }).click();
  const html = await saved(page, "Save the picture");
  here("simulate shop.yaml --seed 0", [SHOP]);
  const made = spawnSync(program, ["simulate", "shop.yaml", "--seed", "0", "--html", "picture.html"], { cwd: folder });
  assert.equal(made.status, 0);
  assert.equal(html, readFileSync(`${folder}/picture.html`, "utf8"));
  await close();
});

test("a link carries files and command", async () => {
  const first = await open({ permissions: ["clipboard-read", "clipboard-write"] });
  const text = "# ü 😀 <b>\n" + SHOP[1];
  await first.page.getByRole("textbox", { name: "Text of the file" }).fill(text);
  await first.page.getByRole("textbox", { name: "Name of the file" }).fill("my shop.yaml");
  await first.page.getByRole("button", { name: "Add" }).click();
  await first.page.getByRole("textbox", { name: "Text of the file" }).fill("# nothing");
  await first.page.locator("#command").fill("simulate 'my shop.yaml' manifest.yaml --seed 4");
  await first.page.getByRole("button", { name: "Copy a link" }).click();
  await first.page.waitForURL(/#v1=/);
  const url = first.page.url();
  await first.close();
  const { page, close } = await open({ hash: url.slice(url.indexOf("#")) });
  assert.equal(await page.locator("#command").inputValue(), "simulate 'my shop.yaml' manifest.yaml --seed 4");
  assert.equal(await page.getByRole("textbox", { name: "Text of the file" }).inputValue(), text);
  assert.match(await page.getByRole("status").textContent(), /^exit code 0/);
  await page.getByRole("button", { name: "manifest.yaml", exact: true }).click();
  assert.equal(await page.getByRole("textbox", { name: "Text of the file" }).inputValue(), "# nothing");
  await close();
});

test("a broken link says so and changes nothing", async () => {
  const whole = await link("simulate shop.yaml", [SHOP]);
  for (const hash of [whole.slice(0, 40), "#v1=%%%", await link("simulate", [["../../x", ""]]), await link("simulate", [["a", ""], ["a", ""]]), await link(7, [])]) {
    const { page, close } = await open({ hash });
    assert.match(await page.getByRole("status").textContent(), /^the link is broken/, hash);
    await close();
  }
});

test("a link that unpacks to too much is refused", async () => {
  const { page, close } = await open({ hash: await link("simulate a", [["a", "x".repeat(9 << 20)]]) });
  assert.match(await page.getByRole("status").textContent(), /more than 8 MiB/);
  await close();
});

test("hostile names and texts stay text", async () => {
  const { page, close } = await open({ hash: await link(`simulate '${HOSTILE}'`, [hostile]) });
  assert.match(await page.getByRole("region", { name: "Result" }).locator("pre").innerText(), /script/);
  assert.equal(await page.locator("img").count(), 0);
  await close();
});

test("an error leads to its line and column", async () => {
  const { page, close } = await open({ hash: await link("simulate folder/wrong.yaml", [["a.yaml", ""], wrong]) });
  const place = page.getByRole("button", { name: /^folder\/wrong\.yaml:\d+:\d+$/ }).first();
  const [, line, column] = (await place.textContent()).match(/:(\d+):(\d+)$/).map(Number);
  await place.click();
  const text = page.getByRole("textbox", { name: "Text of the file" });
  assert.equal(await text.inputValue(), wrong[1]);
  assert.ok(await text.evaluate((element) => element === document.activeElement));
  const before = wrong[1].split("\n").slice(0, line - 1).join("\n").length + 1 + column - 1;
  assert.equal(await text.evaluate((element) => element.selectionStart), before);
  assert.ok(wrong[1].slice(before).startsWith("maxSkwe"));
  await close();
});

test("a long run is cancelled, and the next one answers", async () => {
  const { page, close } = await open();
  await page.locator("#command").fill("simulate shop.yaml --seeds 100000");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByRole("button", { name: "Cancel" }).click({ timeout: 5000 });
  await rest(page);
  assert.equal(await page.getByRole("status").textContent(), "cancelled");
  await page.getByRole("button", { name: "lint", exact: true }).click();
  await page.waitForFunction(() => /^exit code/.test(document.querySelector("[role=status]").textContent));
  assert.equal(await page.locator("#command").inputValue(), "lint shop.yaml");
  await close();
});

test("a text that is nested too deep ends with a sentence", async () => {
  const { page, close } = await open({ hash: await link("lint deep.yaml", [["deep.yaml", "[".repeat(100_000)]]) });
  assert.match(await page.getByRole("status").textContent(), /^(exit code 2|the input is nested deeper)/);
  await close();
});

test("every example answers, and none is wrong input", async () => {
  const { page, close } = await open();
  const choice = page.getByLabel("Example");
  for (const { value, label } of await choice.locator("option").evaluateAll((options) => options.map(({ value, label }) => ({ value, label })))) {
    if (value === "") continue;
    await page.evaluate(() => { document.body.dataset.state = "waiting"; });
    await choice.selectOption(value);
    await rest(page);
    assert.match(await page.getByRole("status").textContent(), /^exit code [01]:/, label);
  }
  await close();
});

for (const colorScheme of ["light", "dark"]) {
  test(`axe finds nothing in ${colorScheme} colours`, async () => {
    const { page, close } = await open({ colorScheme, hash: await link("lint shop.yaml", [uneven]) });
    const found = await page.evaluate(`${axe};axe.run(document, { iframes: false, runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] })`);
    assert.deepEqual(found.violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]), []);
    await close();
  });
}

test("a narrow screen needs no scrolling to the side", async () => {
  const { page, close } = await open({ viewport: { width: 360, height: 800 } });
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await close();
});
