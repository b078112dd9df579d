// "What runs where": that it says what the program's other commands say, and moves while there is work.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ask, check, finished, metrics, ready, serve, serveIn, underLoad } from './rig.mjs';

const kWideHeads = fileURLToPath(new URL('../../tests/data/quant/q-q4_0.gguf', import.meta.url)); // a quantized cache needs 32 values

// The present number of a chart.
const now = (page, title, text = /./) => page.locator('.plot', { has: page.getByText(title, { exact: true }) }).locator('.big', { hasText: text });

// A number of bytes as the page writes it: "31.5 MB".
const bytesOf = (text) => { const [, n, unit] = /^([\d.]+) (bytes|kB|MB|GB|TB)$/.exec(text.trim()); return Number(n) * 1000 ** ['bytes', 'kB', 'MB', 'GB', 'TB'].indexOf(unit); };
const close = (shown, n) => assert.ok(Math.abs(bytesOf(shown) - n) <= Math.max(1, n * 0.05), `${shown} for ${n} bytes`);

export async function where(program, server) {
  const { url, model } = server;
  const run = async (...words) => JSON.parse((await promisify(execFile)(program, [...words, '--json'], { maxBuffer: 1 << 26 })).stdout);

  await check('/v1/explain is what `gimbal explain` and `gimbal plan` print', url, async () => {
    const { workers: [told] } = await (await fetch(`${url}/v1/explain/${model}`)).json();
    const plan = await run('plan'), explained = await run('explain');
    for (const kind of ['weights', 'memory_total', 'device']) assert.equal(told.devices[0][kind], plan.devices[0][kind], kind);
    const kinds = ['weights', 'kv_cache', 'activations', 'step', 'output', 'scratch'];
    assert.equal(told.devices[0].total, kinds.reduce((sum, kind) => sum + told.devices[0][kind], 0));
    const [ops, expected] = [told.programs[0].ops, explained.buckets[0].ops];
    assert.equal(ops.length, expected.length);
    for (const [i, [name, , choice]] of ops.entries()) {
      const { op, kernel, why, device, rejected } = told.choices[choice];
      assert.deepEqual({ name, op, kernel, why, device }, { name: expected[i].name, op: expected[i].op, kernel: expected[i].kernel, why: expected[i].why, device: expected[i].device });
      const pairs = rejected.flatMap((r) => r.kernels.map((k) => `${k}: ${r.why}`)).sort();
      assert.deepEqual(pairs, expected[i].rejected.map((r) => `${r.kernel}: ${r.why}`).sort());
    }
  });

  await check('it draws memory, ops and devices, and moves while there is work', `${url}/#/where`, async (page) => {
    await page.getByRole('heading', { name: 'What a step computes' }).waitFor();
    await page.getByText('waiting for work').waitFor();
    await page.getByRole('row', { name: /^Weights/ }).waitFor();
    assert.ok(await page.locator('.pages span').count() > 10);
    assert.match(await page.getByRole('region', { name: 'Devices of the machine' }).textContent(), /cpu:0/);
    const { workers: [{ devices: [plan] }] } = await (await fetch(`${url}/v1/explain/${model}`)).json();
    const memory = page.getByRole('region', { name: 'Memory of cpu:0' });
    for (const [kind, name] of Object.entries({ weights: 'Weights', kv_cache: 'KV cache', activations: 'Activations', step: 'Step data', output: 'Output' }))
      close(await memory.getByRole('row', { name: new RegExp(`^${name}`) }).locator('.number').textContent(), plan[kind]);
    const said = await memory.textContent();
    for (const [pattern, kind] of [[/([\d.]+ \w+) planned/, 'total'], [/The device has ([\d.]+ \w+)/, 'memory_total'], [/: ([\d.]+ \w+) were free/, 'free']]) close(pattern.exec(said)[1], plan[kind]);
    const widths = await memory.locator('.stack span').evaluateAll((all) => all.map((el) => el.getBoundingClientRect().width));
    assert.ok(widths[1] > 10 * widths[0], 'the KV cache is drawn larger than the weights');

    const free = () => page.getByRole('row', { name: /^free/ }).locator('.number').textContent();
    const before = await free();
    // The texts may be written within one look of the page, so whoever wants to see it happen looks before they are begun.
    await Promise.all([
      page.getByText('computing').waitFor(),
      page.waitForFunction(() => Number(document.querySelector('.plot .big').textContent.replace(',', '')) > 0),
      page.waitForFunction((was) => [...document.querySelectorAll('.plain tr')].find((r) => r.textContent.startsWith('free'))?.querySelector('.number').textContent !== was, before),
      page.getByRole('button', { name: 'Try it: write four texts' }).click(),
    ]);
    const painted = await page.locator('.plot canvas').first().evaluate((c) => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((x) => x));
    assert.ok(painted);
    await page.getByText('waiting for work').waitFor();
  });

  await check('the format of the cache, and whether its values are rotated', url, async (page) => {
    for (const [words, line] of [
      [['f16'], 'KV cache in f16; '],
      [['q8_0'], 'KV cache in q8_0, not rotated: 8 bits lose little without it; '],
      [['q5_0'], 'KV cache in q5_0, rotated: 4 and 5 bits lose less of rotated values; '],
      [['q5_0', '--kv-rotation', 'off'], "KV cache in q5_0, not rotated: 'cache_rotation' is off; "],
    ]) {
      const other = await serve(program, kWideHeads, '--kv-type', ...words);
      try {
        await page.goto(`${other.url}/#/where`);
        await page.getByText(line).waitFor();
      } finally {
        await page.goto('about:blank'); // the page asks for news as long as it is open
        await other.end();
      }
    }
  });

  await check('an address that changes as soon as the page is drawn is followed', url, async (page) => {
    await page.addInitScript(() => {
      new MutationObserver((_, watch) => { if (document.querySelector('nav')) { watch.disconnect(); location.hash = '#/where'; } }).observe(document, { childList: true, subtree: true });
    });
    await page.reload();
    await page.getByText('waiting for work').waitFor({ timeout: 10_000 }); // at once, or never
  });

  await check('each number has a word on what it means', `${url}/#/where`, async (page) => {
    await page.getByRole('row', { name: /^Weights/ }).waitFor();
    const bare = await page.evaluate(() => {
      const word = (el) => el?.textContent.trim().split(/\s+/).length ?? 0;
      return [
        ...[...document.querySelectorAll('.plot')].filter((el) => word(el.querySelector('small')) < 5),
        ...[...document.querySelectorAll('.facts-row p')].filter((el) => word(el) < 8),
        ...[...document.querySelectorAll('.plain:not(.lined) tr')].filter((el) => !word(el.querySelector('small'))),
      ].map((el) => el.textContent);
    });
    assert.deepEqual(bare, []);
    assert.ok(await page.locator('.plot').count() >= 3 && await page.locator('.plain tr').count() >= 9);
    // And each is one that the server counts: a name that it does not have would be shown as nothing for ever.
    const known = [...(await metrics(url)).keys()], web = new URL('../../web/src/where/', import.meta.url);
    for (const file of ['where.tsx', 'numbers.ts', 'memory.tsx'])
      for (const [, name] of (await readFile(new URL(file, web), 'utf8')).matchAll(/\b(?:value|rate|median|pages)\((?:\w+, )?['`]([a-z_]+)/g))
        // Those of the prefix store (`prefix_store_`) are checked below, where there is one.
        if (!name.endsWith('_')) assert.ok(known.some((k) => k.startsWith(`gimbal_${name}`) || k === `gimbal_kv_pages{state="${name}"}`), `${file}: /metrics has no ${name}`);
  });

  await check('batch, pages that are shared and the pages of each kind, under load; and it moves with every look', `${url}/#/where`, async (page) => {
    const row = (name) => page.getByRole('row', { name: new RegExp(`^${name}`) }).locator('.number').textContent().then((text) => Number(text.replace(',', '')));
    const until = async (f) => { for (;;) { const found = await f(); if (found) return found; await page.waitForTimeout(50); } };
    await row('shared');
    await underLoad(server, 6, async () => {
      await until(async () => (await row('shared')) > 0 && (await row('running')) > 0);
      assert.match(await page.locator('.pages').getAttribute('aria-label'), /^shared \d+, running \d+, kept \d+, free \d+$/);
      await until(async () => Number(await now(page, 'Batch size').textContent()) > 1);
      await until(async () => /^[1-6] running/.test(await now(page, 'Requests').textContent()));
      // The worker is asked at each look: were its numbers older than that, every second look would see nothing.
      const looks = async () => {
        let moved = 0, before = (await metrics(url)).get('gimbal_steps_total');
        for (let i = 0; i < 10; i++) {
          await page.waitForTimeout(300);
          const now = (await metrics(url)).get('gimbal_steps_total');
          moved += now > before;
          before = now;
        }
        return moved;
      };
      let most = 0;
      for (let i = 0; i < 5 && most < 7; i++) most = Math.max(most, await looks());
      assert.ok(most >= 7, `the steps moved at ${most} of 10 looks`);
    });
  });

  const few = await serve(program, '--parallel', '2', '--draft', 'ngram');
  try {
    await check('the queue, and how many guessed tokens were right', `${few.url}/#/where`, async (page) => {
      await page.getByText('Speculative decoding: no token was drafted so far').waitFor();
      await underLoad(few, 6, () => now(page, 'Requests', /[1-9]\d* in queue/).waitFor());
      // A text that repeats itself: what follows is guessed from what was there.
      await underLoad(few, 1, () => page.getByText(/of the drafts were accepted/).waitFor(), { temperature: 0 });
      for (let before; ;) { // until nothing changes any more
        const m = await metrics(few.url), [drafted, accepted] = ['', '_accepted'].map((w) => m.get(`gimbal_draft_tokens${w}_total`));
        assert.ok(drafted > 0 && accepted <= drafted);
        if (before === `${drafted} ${accepted}`) {
          await page.getByText(`${Math.round((100 * accepted) / drafted)} % of the drafts were accepted: ${accepted.toLocaleString('en')} of ${drafted.toLocaleString('en')} tokens`).waitFor();
          break;
        }
        before = `${drafted} ${accepted}`;
      }
    });
  } finally {
    await few.end();
  }

  const cache = await mkdtemp(join(tmpdir(), 'gimbal-page-'));
  const env = { XDG_CACHE_HOME: cache };
  const fresh = await serveIn(env, program);
  try {
    await check('where the memory’s speed was never measured, no chart takes room for it', `${fresh.url}/#/where`, async (page) => {
      await page.getByText('Batch size', { exact: true }).waitFor();
      await page.getByRole('region', { name: 'In short' }).waitFor();
      assert.deepEqual(await page.locator('.plot b').allTextContents(), ['Tokens per second', 'Batch size', 'Requests']);
    });
  } finally {
    await fresh.end();
  }
  await promisify(execFile)(program, ['bench', '--json', '-p', '1', '-n', '1', '-r', '1'], { env: { ...process.env, ...env } });
  const measured = await serveIn(env, program);
  try {
    await check('the share of the memory’s limit, once it was measured', `${measured.url}/#/where`, async (page) => {
      const { workers: [told] } = await (await fetch(`${measured.url}/v1/explain/${measured.model}`)).json();
      const limit = Math.round(told.devices[0].read_bytes_per_second / told.weight_bytes_per_token);
      await page.getByText(`the memory allows ${limit.toLocaleString('en')} steps per second`).waitFor();
      await underLoad(measured, 2, () => now(page, 'Memory bandwidth used', /^[1-9]\d* %$/).waitFor());
    });
  } finally {
    await measured.end();
    await rm(cache, { recursive: true });
  }

  const folder = await mkdtemp(join(tmpdir(), 'gimbal-prefixes-'));
  const storing = await serve(program, '--prefix-store', folder);
  try {
    await check('the prefix store and what it saved', `${storing.url}/#/where`, async (page) => {
      const card = page.getByRole('region', { name: 'Prefix store' });
      await card.waitFor();
      await card.getByText('seconds').waitFor();
      const prompt = 'Once upon a time there was a little girl who had a dog. '.repeat(8);
      await fetch(`${storing.url}/v1/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ prompt, max_tokens: 2 }) });
      await card.getByRole('row', { name: /^texts that found none/ }).locator('.number', { hasText: '1' }).waitFor();
      const known = await metrics(storing.url), source = await readFile(new URL('../../web/src/where/memory.tsx', import.meta.url), 'utf8');
      const names = [...source.matchAll(/\bof\('([a-z_]+)'\)/g)].map(([, name]) => name);
      assert.ok(names.length >= 7);
      for (const name of names) assert.ok(known.has(`gimbal_prefix_store_${name}`), `/metrics has no prefix_store_${name}`);
    });
  } finally {
    await storing.end();
    await rm(folder, { recursive: true });
  }

  await check('plots are drawn in the colours that are chosen', `${url}/#/where`, async (page) => {
    const has = (name) => page.waitForFunction((name) => {
      const probe = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
      probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
      probe.fillRect(0, 0, 1, 1);
      const [r, g, b] = probe.getImageData(0, 0, 1, 1).data, canvas = document.querySelector('.plot canvas');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      for (let i = 0; i < data.length; i += 4) if (data[i] === r && data[i + 1] === g && data[i + 2] === b && data[i + 3] === 255) return `rgb(${r}, ${g}, ${b})`;
      return false;
    }, name).then((h) => h.jsonValue());
    await page.getByText('waiting for work').waitFor();
    const light = await has('--line');
    // No look follows: it is drawn anew because the colours are others.
    await page.route('**/metrics', () => {});
    await page.getByRole('button', { name: 'Theme: auto' }).click();
    await page.getByRole('button', { name: 'Theme: light' }).click();
    await page.waitForFunction(() => getComputedStyle(document.documentElement).colorScheme === 'dark');
    assert.notEqual(await has('--line'), light);
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.getByRole('button', { name: 'Theme: dark' }).click();
    await has('--line');
    await page.emulateMedia({ colorScheme: 'light' });
    // The click and the system's preference take effect in either order.
    await page.waitForFunction(() => getComputedStyle(document.documentElement).colorScheme === 'light');
    assert.equal(await has('--line'), light);
    await page.reload();
    await page.getByRole('button', { name: 'Theme: auto' }).waitFor();
  });

  await check('ops are chosen with the arrow keys, and say their kernel and those not taken', `${url}/#/where`, async (page) => {
    const first = page.locator('.ops button').first();
    await first.focus();
    const said = () => page.locator('.chosen').textContent();
    assert.match(await said(), /embed/);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowRight');
    assert.match(await said(), /Layers 0 to 4, attn_q.*mat_mul f32.*cpu\..*mat_mul\.f32.*because:/s);
    await page.getByText(/kernels for it that were not taken/).click();
    await page.getByText('does not take f32', { exact: false }).first().waitFor();
    await page.getByRole('button', { name: /^Prompt, 256 rows/ }).click();
    assert.match(await said(), /256/);
  });

  await check('an answer has its receipt', url, async (page) => {
    await ready(page);
    await ask(page, 'Once upon a time');
    await finished(page);
    await page.getByRole('link', { name: 'What computed this' }).click();
    await page.getByText(/prompt tokens, \d+ of them computed before/).waitFor();
    const id = decodeURIComponent(new URL(page.url()).hash.slice('#/where/'.length));
    const told = await (await fetch(`${url}/v1/receipts/${id}`)).json();
    const rows = page.getByRole('region', { name: 'Kernels of this answer' }).locator('tbody tr');
    assert.deepEqual(await rows.evaluateAll((all) => all.map((r) => [...r.children].map((c) => c.textContent))),
      told.ops.map((o) => [o.op, o.format, String(o.ops), o.device, o.kernel, o.reason]));
    assert.ok(told.ops.length > 5);
    await page.getByText(`${told.prompt_tokens} prompt tokens, ${told.shared_tokens} of them computed before for another request; ${told.completion_tokens} tokens of answer by ${model}`).waitFor();
    await page.goto(`${url}/#/where/nothing`);
    await page.getByText('there is no receipt').waitFor();
    await page.goto(`${url}/#/where/%`);
    await page.getByRole('heading', { name: 'What a step computes' }).waitFor();
  }, { expected: /404/ });
}
