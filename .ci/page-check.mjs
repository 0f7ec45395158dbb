// SPDX-License-Identifier: MIT OR Apache-2.0
// Opens pages of `floodline report` in a headless Chromium and fails on a console message, a request, a page wider than its
// window, a complaint of axe-core, a plot that stays a picture when it is scrolled to, a zoom that a plot does not follow, a link
// that misses its section, or a picture that is missing in print. Writes pictures (1280 and 400 columns, light and dark) and the
// print beside each page, and prints how long each page takes: to its first paint, and on a CPU slowed 4 times until the plots on
// the screen react, at the top of the page, at its plots, and when a plot is scrolled to.
// node page-check.mjs PAGE.html…; CHROMIUM names the browser.
import fs from "node:fs";
import path from "node:path";
import puppeteer from "puppeteer-core";
import axe from "axe-core";

const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
let complaints = 0;
const complain = (text) => { complaints += 1; console.log(text); };
// What is far from the screen is not laid out by the browser, and would not count as too wide.
const layOut = (page) => page.evaluate(() => void document.styleSheets[0].insertRule("main>section[id]{content-visibility:visible!important}", document.styleSheets[0].cssRules.length));
const ranges = (page) => page.$$eval("figure.live canvas", (all) => [...new Set(all.map((one) => one.getAttribute("aria-label").replace(/.*; shown/s, "")))]);
const frames = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))));
for (const file of process.argv.slice(2).map((name) => path.resolve(name))) {
  const page = await browser.newPage();
  page.on("console", (message) => complain(`${file}: console: ${message.text()}`));
  page.on("pageerror", (error) => complain(`${file}: error: ${error.message}`));
  page.on("request", (request) => { if (!request.url().startsWith(`file://${file}`)) complain(`${file}: request: ${request.url()}`); });
  const hasPlots = async () => (await page.$("figure.plot")) !== null;
  const started = () => page.waitForSelector(".tools", { timeout: 20000 }).catch(() => complain(`${file}: the script does not start`));
  const scrollThrough = async () => {
    for (const figure of await page.$$("figure.plot")) {
      await figure.evaluate((one) => one.scrollIntoView({ block: "center", behavior: "instant" }));
      await page.waitForFunction((one) => one.querySelector(":scope.live canvas"), { timeout: 5000 }, figure)
        .catch(async () => complain(`${file}: ${await figure.evaluate((one) => one.id)} is scrolled to and stays a picture`));
    }
  };
  for (const width of [1280, 400]) for (const value of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
    await page.setViewport({ width, height: 900 });
    await page.goto(`file://${file}`);
    await page.waitForNetworkIdle({ idleTime: 300 });
    if (await hasPlots()) await started();
    await scrollThrough();
    await layOut(page);
    const over = await page.evaluate(() => Math.max(document.documentElement.scrollWidth - innerWidth, ...[...document.querySelectorAll("main>section")].map((one) => one.scrollWidth - one.clientWidth)));
    if (over > 0) complain(`${file}: ${over} pixels too wide at ${width}`);
    await page.evaluate(() => scrollTo({ top: 0, behavior: "instant" }));
    await page.screenshot({ path: file.replace(/\.html$/, `-${width}-${value}.png`), fullPage: true });
  }
  // Links of the page, before anything else is laid out.
  await page.setViewport({ width: 1280, height: 900 });
  await page.goto(`file://${file}`);
  for (const link of await page.$$("nav a")) {
    await link.evaluate((one) => one.click());
    const missed = await page.waitForFunction((one) => {
      const { top } = document.querySelector(one.getAttribute("href")).getBoundingClientRect();
      const isEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 2;
      return (top > -2 && top < 40) || (isEnd && top > 0 && top < innerHeight);
    }, { timeout: 5000, polling: 500 }, link).then(() => false, () => true);
    if (missed) complain(`${file}: the link ${await link.evaluate((one) => one.getAttribute("href"))} misses its section`);
  }
  // A drag in the first plot, a plot that becomes live later, a change of colours: all show one range.
  await page.goto("about:blank");
  await page.goto(`file://${file}`);
  if (await hasPlots()) {
    await started();
    const first = await page.$("figure.plot");
    const set = (figure) => figure.evaluate((one) => one.dataset.plot.split(".")[0]);
    await first.evaluate((one) => one.scrollIntoView({ block: "start", behavior: "instant" }));
    const over = await page.waitForSelector("figure.live .u-over");
    await frames(page);
    const box = await over.boundingBox();
    const still = await first.$eval(".legend .most", (one) => one.textContent);
    await page.mouse.move(box.x + box.width * 0.3, box.y + box.height / 2);
    await frames(page);
    if (still === await first.$eval(".legend .most", (one) => one.textContent)) complain(`${file}: a plot shows no value below the pointer`);
    const whole = await ranges(page);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y + box.height / 2, { steps: 4 });
    await page.mouse.up();
    await frames(page);
    const points = await page.evaluate(() => document.querySelectorAll("figure.live").length);
    const zoomed = await first.$eval("canvas", (one) => one.getAttribute("aria-label").replace(/.*; shown/s, ""));
    if (whole.includes(zoomed)) complain(`${file}: a drag does not zoom`);
    const follows = async (when) => {
      for (const figure of await page.$$("figure.live")) {
        if (await set(figure) !== await set(first)) continue;
        const shown = await figure.$eval("canvas", (one) => one.getAttribute("aria-label").replace(/.*; shown/s, ""));
        if (shown !== zoomed) complain(`${file}: ${when}, ${await figure.evaluate((one) => one.id)} shows${shown} instead of${zoomed}`);
      }
    };
    await follows("after a drag");
    await scrollThrough();
    await frames(page);
    await follows("when it becomes live");
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
    await frames(page);
    await follows("after a change of colours");
    await page.click(".tools button");
    await frames(page);
    if ((await ranges(page)).includes(zoomed)) complain(`${file}: the button does not show the whole recording`);
    if (points === 0) complain(`${file}: no plot is live`);
  }
  // In print every plot is a picture, live or not.
  await page.goto("about:blank");
  await page.goto(`file://${file}`);
  await page.emulateMediaType("print");
  const unseen = await page.$$eval("figure.plot", (all) => all.filter((one) => one.querySelector(":scope > svg").getBoundingClientRect().height < 50).length);
  if (unseen) complain(`${file}: ${unseen} plots are missing in print`);
  await page.emulateMediaType(null);
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
    await layOut(bare);
    await bare.evaluate(axe.source);
    const { violations } = await bare.evaluate(() => globalThis.axe.run());
    for (const found of violations) complain(`${file}: ${value}: ${found.id}: ${found.nodes.length} × ${found.nodes[0].html.slice(0, 100)}`);
  }
  await bare.close();
  // Medians of some loads; nothing fails for them, as they depend on the machine.
  const timed = async (rate, at) => {
    const runs = [];
    for (let run = 0; run < 7; run += 1) {
      const fresh = await browser.newPage();
      await fresh.setViewport({ width: 1280, height: 900 });
      await fresh.emulateCPUThrottling(rate);
      await fresh.goto(`file://${file}${at}`);
      const paint = await fresh.waitForFunction(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
      // Plots outside the screen wait; those on it must be live.
      const reacts = () => {
        const all = [...document.querySelectorAll("figure.plot")].filter((one) => one.checkVisibility({ contentVisibilityAuto: true }));
        const seen = all.filter((one) => { const { top, bottom } = one.getBoundingClientRect(); return bottom > 0 && top < innerHeight; });
        return seen.every((one) => one.matches(".live")) && performance.now();
      };
      const ready = hasScript && await fresh.waitForFunction(`document.querySelector(".tools") && (${reacts})()`);
      let slowest = 0;
      for (const figure of at ? [] : await fresh.$$("figure.plot")) {
        slowest = Math.max(slowest, await figure.evaluate((one) => new Promise((done) => {
          const from = performance.now();
          one.scrollIntoView({ block: "center", behavior: "instant" });
          const look = () => one.matches(".live") ? done(performance.now() - from) : requestAnimationFrame(look);
          look();
        })));
      }
      runs.push([await paint.jsonValue(), ready ? await ready.jsonValue() : 0, slowest]);
      await fresh.close();
    }
    return [0, 1, 2].map((at) => Math.round(runs.map((run) => run[at]).sort((a, b) => a - b)[3]));
  };
  const hasScript = fs.readFileSync(file, "utf8").includes("figure id=");
  const [paint] = await timed(1, ""), [, top, scrolled] = await timed(4, ""), [, plots] = await timed(4, "#timeline");
  console.log(`${path.basename(file)}: ${Math.round(fs.statSync(file).size / 1024)} KiB, first paint after ${paint} ms; on a CPU slowed 4 times the screen reacts after ${top} ms, at the plots after ${plots} ms, and a plot that is scrolled to after at most ${scrolled} ms`);
}
await browser.close();
console.log(`${process.argv.length - 2} pages, ${complaints} complaints`);
process.exit(complaints ? 1 : 0);
