// Pictures of pages to look at: node test/look.mjs FOLDER PAGE...
import { chromium } from "playwright-core";
import { browser } from "./browser.mjs";

const [folder, ...pages] = process.argv.slice(2);
const chrome = await chromium.launch(browser());
for (const page of pages) {
  const name = page.replace(/.*\//, "").replace(/\.html.*/, "");
  const all = [[1400, "light"], [1400, "dark"], [390, "light"], [390, "dark"]];
  for (const [width, scheme] of process.env.FEW ? [all[0], all[3]] : all) {
    const context = await chrome.newContext({ colorScheme: scheme, viewport: { width, height: 900 }, offline: true });
    const tab = await context.newPage();
    tab.on("console", (message) => console.log(name, message.text()));
    tab.on("pageerror", (error) => console.log(name, String(error)));
    await tab.goto(`file://${page}`);
    await tab.waitForSelector("body[data-ready]", { timeout: 60000 });
    console.log(name, width, scheme, "drawn in", await tab.evaluate(() => document.body.dataset.drawn), "ms; height",
      await tab.evaluate(() => document.documentElement.scrollHeight), "scrollWidth", await tab.evaluate(() => document.documentElement.scrollWidth));
    await tab.screenshot({ path: `${folder}/${name}-${width}-${scheme}.png`, fullPage: width === 1400 });
    if (width === 390) await tab.screenshot({ path: `${folder}/${name}-${width}-${scheme}-full.png`, fullPage: true });
    await context.close();
  }
}
await chrome.close();
