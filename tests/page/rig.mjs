// What the tests of the page share: a server of their own, a browser, checks with names.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chromium } from 'playwright-core';

export async function serve(program, ...options) {
  const process = spawn(program, ['serve', '--port', '0', '--json', ...options], { stdio: ['ignore', 'pipe', 'pipe'] });
  let errors = '';
  process.stderr.on('data', (text) => { errors += text; });
  const line = await Promise.race([once(process.stdout, 'data'), once(process, 'exit')]);
  if (typeof line[0] === 'number' || line[0] === null) throw new Error(`the server ended: ${errors}`);
  const { url, models } = JSON.parse(line[0]);
  return { url, model: models[0], end: async () => { process.kill('SIGTERM'); if (process.exitCode === null) await once(process, 'exit'); } };
}

// Debian's wrapper of chromium reads settings of the desktop; the program itself needs none.
export const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-background-networking', '--disable-component-update'],
});

let failed = 0;
export const failures = () => failed;

// Runs with a page of its own. What the page says on its console as an error, or what its policy refuses, fails the check.
export async function check(name, url, run, { width = 1100, height = 800, expected = /$^/, ...context } = {}) {
  const own = await browser.newContext({ viewport: { width, height }, ...context });
  const page = await own.newPage();
  const said = [];
  page.on('console', (m) => { if (m.type() === 'error' && !expected.test(m.text())) said.push(m.text()); });
  page.on('pageerror', (e) => said.push(String(e)));
  page.setDefaultTimeout(15_000);
  const start = performance.now();
  try {
    await page.goto(url);
    await run(page);
    if (said.length) throw new Error(`the page said: ${said.join('\n')}`);
    console.log(`ok ${name} (${((performance.now() - start) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed++;
    console.log(`FAILED ${name}:`, error);
  } finally {
    await own.close();
  }
}

// A network that gives so many bytes a second: the tiny model is too fast to be stopped otherwise.
export async function slow(page, bytes) {
  const session = await page.context().newCDPSession(page);
  await session.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: bytes, uploadThroughput: -1 });
  return () => session.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
}

export const message = (page) => page.getByLabel('Your message', { exact: true });
export const answers = (page) => page.locator('article.assistant');
export const finished = (page, n = 1) => page.locator('article.assistant:not([aria-busy=true])').nth(n - 1).getByRole('button', { name: 'Try again' }).waitFor();
export async function ask(page, text) {
  await message(page).fill(text);
  await message(page).press('Enter');
}
// A conversation as this page exports it, so that a test decides what an answer says.
export const fileOf = (...answers) => ({
  name: 'conversations.json', mimeType: 'application/json',
  buffer: Buffer.from(JSON.stringify({
    format: 'gimbal-conversations', version: 1,
    conversations: answers.map((answer, i) => ({
      title: `imported ${i}`, changed: 1, model: 'x', settings: {}, chosen: { '': 'q', q: 'a' },
      turns: { q: { id: 'q', parent: '', role: 'user', text: 'a question', at: 1 }, a: { id: 'a', parent: 'q', role: 'assistant', state: 'done', at: 2, ...answer } },
    })),
  })),
});
export const load = (page, ...answers) => page.getByLabel('A file of conversations').setInputFiles(fileOf(...answers));
// The page knows the models.
export const ready = (page) => page.waitForFunction(() => !['', 'none'].includes(document.querySelector('.model select')?.value ?? ''));
