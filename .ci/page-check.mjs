// SPDX-License-Identifier: MIT OR Apache-2.0
// Opens pages of `floodline report` in a headless Chromium and fails on a console message, a request, a page wider than its
// window, or a complaint of axe-core. Writes pictures (1280 and 400 columns, light and dark) and the print beside each page, and
// prints how long each page takes: to its first paint, and on a CPU slowed 4 times until the script has drawn all plots.
// node page-check.mjs PAGE.html…; CHROMIUM names the browser.
import fs from "node:fs";
import path from "node:path";
import puppeteer from "puppeteer-core";
import axe from "axe-core";

const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
let complaints = 0;
const complain = (text) => { complaints += 1; console.log(text); };
for (const file of process.argv.slice(2).map((name) => path.resolve(name))) {
  const page = await browser.newPage();
  page.on("console", (message) => complain(`${file}: console: ${message.text()}`));
  page.on("pageerror", (error) => complain(`${file}: error: ${error.message}`));
  page.on("request", (request) => { if (!request.url().startsWith(`file://${file}`)) complain(`${file}: request: ${request.url()}`); });
  for (const width of [1280, 400]) for (const value of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
    await page.setViewport({ width, height: 900 });
    await page.goto(`file://${file}`);
    await page.waitForNetworkIdle({ idleTime: 300 });
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (over > 0) complain(`${file}: ${over} pixels too wide at ${width}`);
    const [plots, live] = await page.evaluate(() => [document.querySelectorAll("figure.plot").length, document.querySelectorAll("figure.live canvas").length]);
    if (plots !== live) complain(`${file}: ${live} of ${plots} plots are drawn by the script`);
    await page.screenshot({ path: file.replace(/\.html$/, `-${width}-${value}.png`), fullPage: true });
  }
  await page.pdf({ path: file.replace(/\.html$/, ".pdf"), preferCSSPageSize: true });
  await page.setJavaScriptEnabled(false);
  await page.goto(`file://${file}`);
  if (!(await page.$("figure.plot > svg, table"))) complain(`${file}: empty without script`);
  await page.close();
  // The policy of the page would refuse axe: it is put past it here, and only here.
  const bare = await browser.newPage();
  await bare.setBypassCSP(true);
  for (const value of ["light", "dark"]) {
    await bare.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
    await bare.goto(`file://${file}`);
    await bare.evaluate(axe.source);
    const { violations } = await bare.evaluate(() => globalThis.axe.run());
    for (const found of violations) complain(`${file}: ${value}: ${found.id}: ${found.nodes.length} × ${found.nodes[0].html.slice(0, 100)}`);
  }
  await bare.close();
  // Medians of some loads; nothing fails for them, as they depend on the machine.
  const timed = async (rate) => {
    const runs = [];
    for (let run = 0; run < 7; run += 1) {
      const fresh = await browser.newPage();
      await fresh.setViewport({ width: 1280, height: 900 });
      await fresh.emulateCPUThrottling(rate);
      await fresh.goto(`file://${file}`);
      const drawn = await fresh.waitForFunction(() => document.querySelectorAll("figure.plot").length === document.querySelectorAll("figure.live canvas").length && performance.now());
      const paint = await fresh.waitForFunction(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
      runs.push([await paint.jsonValue(), await drawn.jsonValue()]);
      await fresh.close();
    }
    return [0, 1].map((at) => Math.round(runs.map((run) => run[at]).sort((a, b) => a - b)[3]));
  };
  const [paint] = await timed(1), [, drawn] = await timed(4);
  console.log(`${path.basename(file)}: ${Math.round(fs.statSync(file).size / 1024)} KiB, first paint after ${paint} ms, drawn after ${drawn} ms on a CPU slowed 4 times`);
}
await browser.close();
console.log(`${process.argv.length - 2} pages, ${complaints} complaints`);
process.exit(complaints ? 1 : 0);
