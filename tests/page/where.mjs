// "What runs where": that it says what the program's other commands say, and moves while there is work.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ask, check, finished, ready } from './rig.mjs';

export async function where(program, { url, model }) {
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

    const free = () => page.getByRole('row', { name: /^free/ }).locator('.number').textContent();
    const before = await free();
    // The texts may be written within one look of the page, so whoever wants to see it happen looks before they are begun.
    await Promise.all([
      page.getByText('computing').waitFor(),
      page.waitForFunction(() => Number(document.querySelector('.plot .big').textContent.replace(',', '')) > 0),
      page.waitForFunction((was) => [...document.querySelectorAll('.plain tr')].find((r) => r.textContent.startsWith('free'))?.querySelector('.number').textContent !== was, before),
      page.getByRole('button', { name: 'Give it four texts' }).click(),
    ]);
    const painted = await page.locator('.plot canvas').first().evaluate((c) => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((x) => x));
    assert.ok(painted);
    await page.getByText('waiting for work').waitFor();
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
    assert.ok(await page.getByRole('region', { name: 'Kernels of this answer' }).getByRole('row').count() > 5);
    await page.goto(`${url}/#/where/nothing`);
    await page.getByText('there is no receipt').waitFor();
  }, { expected: /404/ });
}
