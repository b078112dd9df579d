// What the tests of the page share: a server of their own, a browser, checks with names.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chromium } from 'playwright-core';

export const serve = (program, ...options) => serveIn({}, program, ...options);

// With these variables of the environment, too.
export async function serveIn(env, program, ...options) {
  const process = spawn(program, ['serve', '--port', '0', '--json', ...options], { stdio: ['ignore', 'pipe', 'pipe'], env: { ...globalThis.process.env, ...env } });
  let errors = '';
  process.stderr.on('data', (text) => { errors += text; });
  const line = await Promise.race([once(process.stdout, 'data'), once(process, 'exit')]);
  if (typeof line[0] === 'number' || line[0] === null) throw new Error(`the server ended: ${errors}`);
  const { url, models } = JSON.parse(line[0]);
  return { url, model: models[0], models, end: async () => { process.kill('SIGTERM'); if (process.exitCode === null) await once(process, 'exit'); } };
}

// Debian's wrapper of chromium reads settings of the desktop; the program itself needs none.
export const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-background-networking', '--disable-component-update',
    '--host-resolver-rules=MAP evil.example 127.0.0.1,MAP rebind.example 127.0.0.1'],
});

let failed = 0;
export const failures = () => failed;

// Runs with a page of its own. What the page says on its console as an error, or what its policy refuses, fails the check.
export async function check(name, url, run, { width = 1100, height = 800, expected = /$^/, ...context } = {}) {
  if (!name.includes(process.env.ONLY ?? '')) return; // to run one of them by hand
  const own = await browser.newContext({ viewport: { width, height }, ...context });
  const page = await own.newPage();
  const said = [];
  page.on('console', (m) => { if (m.type() === 'error' && !expected.test(m.text())) said.push(m.text()); });
  page.on('pageerror', (e) => said.push(String(e)));
  page.setDefaultTimeout(120_000); // that something hangs; a busy machine is no failure
  const start = performance.now();
  try {
    await page.goto(url);
    await run(page);
    if (said.length) throw new Error(`the page said: ${said.join('\n')}`);
    console.log(`ok ${name} (${((performance.now() - start) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed++;
    const shown = await page.innerText('body', { timeout: 5_000 }).catch((e) => `(unknown: ${e})`);
    console.log(`FAILED ${name}:`, error, `\nThe page showed:\n${shown.slice(0, 2_000)}\nThe page said: ${said.join('\n')}`);
  } finally {
    await own.close();
  }
}

// A network that gives so many bytes a second: the tiny model is too fast to be stopped otherwise. The answer is the model's most
// probable one, which is long: what is asked at a temperature may end before it can be stopped.
export async function slow(page, bytes) {
  await setting(page, { Temperature: '0' });
  const session = await page.context().newCDPSession(page);
  await session.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: bytes, uploadThroughput: -1 });
  return () => session.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
}

// Types into the settings of the conversation: { label: value }.
// A key that is pressed before the dialog stands there goes to the page.
export async function openSettings(page) {
  await page.getByRole('button', { name: 'Settings' }).click();
  await page.getByRole('dialog').waitFor();
}
export async function closeDialog(page) {
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
}
export async function setting(page, values) {
  await openSettings(page);
  for (const [label, value] of Object.entries(values)) await page.getByRole('dialog').getByLabel(label).fill(value);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
}

// What the page asks is answered by these events, as the server would write them; `end`: what stands behind them.
export const scripted = (page, events, end = 'data: [DONE]\n\n') => page.route('**/v1/chat/completions', (route) => route.fulfill({
  contentType: 'text/event-stream', body: events.map((e) => `data: ${JSON.stringify(e)}\n\n`).join('') + end,
}), { times: 1 });
export const delta = (part, more = {}) => ({ id: 'chatcmpl-1', choices: [{ delta: part, finish_reason: null, ...more }] });

// So many answers are being written until `look` has seen what it looks for: nothing is over before somebody looks. They begin
// alike for several pages.
export async function underLoad({ url, model }, clients, look, more = {}) {
  let ended = false;
  const body = JSON.stringify({ model, prompt: 'Once upon a time there was a small house near a big, green park. '.repeat(8), max_tokens: 300, ignore_eos: true, ...more });
  const client = async () => {
    while (!ended) {
      const answer = await fetch(`${url}/v1/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
      assert.equal(answer.status, 200, await answer.text());
    }
  };
  const all = Array.from({ length: clients }, client);
  try {
    return await Promise.race([look(), Promise.all(all)]);
  } finally {
    ended = true;
    await Promise.all(all);
  }
}

// Numbers of /metrics by their names.
export async function metrics(url) {
  const lines = (await (await fetch(`${url}/metrics`)).text()).split('\n').filter((line) => line && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]));
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
