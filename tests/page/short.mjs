// "In short": the device, its speed beside the machine's limit, and what would make it faster.
import assert from 'node:assert/strict';
import { ask, check, finished, metrics, ready, serve } from './rig.mjs';

export async function short(program, { url, model }) {
  const explained = await (await fetch(`${url}/v1/explain/${model}`)).json(), found = await (await fetch(`${url}/v1/backends`)).json();
  // What a larger model's server would say, on a machine with these devices.
  const told = async (page, { worker = {}, backends = found, counted }) => {
    const [own] = explained.workers;
    await page.route('**/v1/explain/**', (route) => route.fulfill({ json: { model, workers: [{ ...own, weight_bytes_per_token: 1e9, ...worker }] } }));
    await page.route('**/v1/backends', (route) => route.fulfill({ json: backends }));
    if (counted) await page.route('**/metrics', (route) => route.fulfill({ contentType: 'text/plain', body: counted }));
    await page.goto(`${url}/#/where`);
    await page.reload();
    const card = page.getByRole('region', { name: 'In short' });
    await card.getByText(/To make it faster|fastest device/).waitFor();
    return card.textContent();
  };
  const [cpu] = explained.workers[0].devices;
  const gpu = { id: 'cuda:0', index: 0, name: 'NVIDIA H100', memory_total: 8e10, memory_free: 8e10, same_card_as: null, features: '', threads: 0, software: false, unified_memory: false, kernels: 300 };
  const withGpu = { ...found, backends: found.backends.map((b) => (b.backend === 'cuda' ? { ...b, available: true, code: '', reason: '', remedy: '', devices: [gpu], refused: [] } : b)) };
  const counted = `gimbal_time_between_tokens_seconds_sum 10\ngimbal_time_between_tokens_seconds_count 120\ngimbal_model_steps_total{model="${model}"} 7\n`;

  await check('in short: the device, a machine that was never measured, and no GPU', url, async (page) => {
    const said = await told(page, { worker: { devices: [{ ...cpu, read_bytes_per_second: null }] }, backends: { ...found, backends: found.backends.map((b) => (b.backend === 'cpu' ? b : { ...b, devices: [], refused: [], code: 'no-device' })) }, counted });
    assert.ok(said.startsWith(`${model} runs on the CPU (${cpu.name}).`), said);
    assert.match(said, /It writes each text at 12 tokens per second\.How near that is to this machine’s limit is not known: run “gimbal bench” once/);
    assert.match(said, /To make it faster: use a GPU\. gimbal found none here/);
  });

  await check('in short: the share of the measured limit', url, async (page) => {
    const said = await told(page, { worker: { devices: [{ ...cpu, read_bytes_per_second: 20e9 }] }, counted });
    assert.match(said, /It writes each text at 12 tokens per second, 60 % of what this machine’s memory allows\./);
    // Accepted drafts give more than a token per step: no share follows from the tokens.
    const drafted = await told(page, { worker: { devices: [{ ...cpu, read_bytes_per_second: 20e9 }] }, counted: `${counted}gimbal_draft_tokens_accepted_total 5\n` });
    assert.match(drafted, /It writes each text at 12 tokens per second; this machine’s memory allows 20 steps per second\./);
    const none = await told(page, { worker: { devices: [{ ...cpu, read_bytes_per_second: 20e9 }] }, counted: 'gimbal_steps_total 0\n' });
    assert.match(none, /Its speed shows here as soon as it writes a text; this machine’s memory allows 20 steps per second\./);
  });

  await check('in short: one text that comes nowhere near the limit', url, async (page) => {
    let looks = 0;
    await page.route('**/metrics', (route) => route.fulfill({ contentType: 'text/plain', body: `gimbal_steps_total ${2 * ++looks}\ngimbal_rows_total ${2 * looks}\ngimbal_model_steps_total{model="${model}"} ${2 * looks}\n` }));
    await told(page, { worker: { devices: [{ ...cpu, read_bytes_per_second: 20e9 }] } });
    await page.getByText(/runs on .* at [\d.]+ tokens per second, \d+ % of what this machine’s memory allows/).waitFor();
    await page.getByText('close other programs on this machine').waitFor();
  });

  await check('in short: a GPU that is there and not used, and why', url, async (page) => {
    const asked = await told(page, { backends: { ...withGpu, automatic: { device: 'cuda:0', reason: 'first available in the automatic order', rejected: [] } } });
    assert.match(asked, /use the GPU cuda:0 \(NVIDIA H100\)\. This server was started with another “--backend”, or before the GPU was ready/);
    const wrong = await told(page, { backends: { ...withGpu, automatic: { device: 'cpu:0', reason: '', rejected: [{ what: 'cuda:0', code: 'verification-failed', reason: 'it computed wrong results', remedy: 'install another driver' }] } } });
    assert.match(wrong, /use the GPU cuda:0 \(NVIDIA H100\), which gimbal found and left out: it computed wrong results; install another driver\./);
    const broken = await told(page, { backends: { ...found, backends: found.backends.map((b) => (b.backend === 'cuda' ? { ...b, present: true, devices: [], refused: [], code: 'driver-too-old', reason: 'the driver is 418', remedy: 'install driver 450 or newer' } : b)) } });
    const bare = await told(page, { backends: { ...found, backends: found.backends.map((b) => (b.backend === 'cpu' ? b : { ...b, devices: [], refused: [], code: 'not-built', remedy: 'put the plugin beside the program' })) } });
    assert.match(bare, /use a GPU\. This program has no GPU backend: put the plugin beside the program\./);
    assert.match(broken, /use a GPU\. CUDA found none that works: the driver is 418; install driver 450 or newer\./);
  });

  await check('in short: layers that are left on the CPU, a GPU that has all, and weights of 16 bits', url, async (page) => {
    const onGpu = { ...cpu, device: 'cuda:0', name: 'NVIDIA H100' };
    const split = await told(page, { backends: withGpu, worker: { devices: [onGpu, cpu], placement: [{ device: 'cuda:0', contents: 'layers 0 to 2', reason: 'they fit' }, { device: 'cpu:0', contents: 'layers 3 to 4 and the output head', reason: '9.0 GB are needed, 8.0 GB are free' }] } });
    assert.match(split, new RegExp(`runs on the GPU cuda:0 \\(NVIDIA H100\\) and the CPU`));
    assert.match(split, /put all of it on the GPU: layers 3 to 4 and the output head are on the CPU \(9\.0 GB are needed, 8\.0 GB are free\)/);
    const whole = await told(page, { backends: withGpu, worker: { devices: [onGpu], placement: [{ device: 'cuda:0', contents: 'all', reason: 'first available in the automatic order' }], choices: explained.workers[0].choices.map((c) => ({ ...c, format: 'q4_K' })) } });
    assert.match(whole, /runs on the GPU cuda:0 .*This is the fastest device that gimbal found here\./s);
    const wide = await told(page, { backends: withGpu, worker: { devices: [onGpu], placement: [{ device: 'cuda:0', contents: 'all', reason: '' }], choices: explained.workers[0].choices.map((c) => ({ ...c, format: 'f16' })) } });
    assert.match(wide, /use a smaller file: these weights are f16\. In Q4_K_M/);
  });

  await check('in short: what the real server says; the chat names the device, too', url, async (page) => {
    await ready(page);
    await page.getByRole('link', { name: /^on the CPU/ }).waitFor();
    await page.getByText(`${model} runs there on the CPU (${cpu.name}).`).waitFor();
    await ask(page, 'Once upon a time');
    await finished(page);
    await page.getByRole('link', { name: /^on the CPU/ }).click();
    const card = page.getByRole('region', { name: 'In short' });
    await card.getByText(/It writes each text at [\d,.]+ tokens per second\.$/).waitFor();
    await card.getByText(/^This model is so small/).waitFor();
    await card.getByText('This is the fastest device that gimbal found here.').waitFor(); // no GPU computes so small a model faster
    const m = await metrics(url), shown = Number((/each text at ([\d,.]+)/.exec(await card.textContent()))[1].replace(',', ''));
    assert.ok(shown > 0 && m.get('gimbal_time_between_tokens_seconds_count') > 0);
  });

  await check('an answer in the chat says its share of the measured limit', url, async (page) => {
    const [own] = explained.workers;
    await page.route('**/v1/explain/**', (route) => route.fulfill({ json: { model, workers: [{ ...own, weight_bytes_per_token: 1e9, devices: [{ ...cpu, read_bytes_per_second: 1e15 }] }] } }));
    await page.reload();
    await ready(page);
    await page.getByRole('link', { name: /^on the CPU/ }).waitFor();
    await ask(page, 'Once upon a time');
    await finished(page);
    await page.locator('.facts', { hasText: /tokens\/s \(\d+ % of this machine’s limit\)/ }).waitFor();
  });

  const fresh = await serve(program, '--keep-alive', '1');
  try {
    await check('in short: a model that is not loaded has no device yet, and gets one with its first answer', fresh.url, async (page) => {
      await ready(page);
      await page.goto(`${fresh.url}/#/where`);
      await page.getByText('This model is not loaded: the first request loads it.').waitFor();
      assert.equal(await page.getByRole('region', { name: 'In short' }).count(), 0);
      await page.getByRole('link', { name: 'Chat' }).click();
      await ask(page, 'Once upon a time');
      await finished(page);
      await page.getByRole('link', { name: /^on the CPU/ }).waitFor();
    });
  } finally {
    await fresh.end();
  }
}
