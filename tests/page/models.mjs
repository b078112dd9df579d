// A server with several models: which one is asked is of the conversation, and one that is not used is given back and loaded again.
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { answers, ask, check, closeDialog, finished, message, metrics, openSettings, ready, serve, setting, underLoad } from './rig.mjs';

const kSecond = fileURLToPath(new URL('../../tests/data/stories/stories260K-q8_0.gguf', import.meta.url)); // run.sh copies this file to build/page-test

export async function models(program) {
  const server = await serve(program, 'default', kSecond);
  const { url, models: [one, two] } = server;
  try {
    await check('several models: each conversation keeps its own, with its settings', url, async (page) => {
      const model = page.locator('.model select');
      const sends = async (text) => (await Promise.all([page.waitForRequest('**/v1/chat/completions'), ask(page, text)]))[0].postDataJSON();
      await ready(page);
      assert.deepEqual(await model.locator('option').allTextContents(), [one, two]);
      assert.equal(await model.inputValue(), one);
      await setting(page, { 'System prompt': 'Of the first.', Temperature: '0', 'Max tokens': '11' });
      let sent = await sends('The first conversation');
      assert.deepEqual([sent.model, sent.messages[0].content, sent.temperature, sent.max_tokens], [one, 'Of the first.', 0, 11]);
      await finished(page);

      await page.getByRole('button', { name: 'New conversation' }).click();
      await model.selectOption(two);
      await setting(page, { 'System prompt': 'Of the second.', Temperature: '0.7', 'Max tokens': '13' });
      sent = await sends('The second conversation');
      assert.deepEqual([sent.model, sent.messages[0].content, sent.temperature, sent.max_tokens], [two, 'Of the second.', 0.7, 13]);
      await finished(page);
      assert.equal(await answers(page).locator('.who').textContent(), two);

      for (const how of ['opened again', 'after a reload']) {
        if (how === 'after a reload') { await page.reload(); await ready(page); }
        for (const [title, which, system, tokens] of [['The first conversation', one, 'Of the first.', '11'], ['The second conversation', two, 'Of the second.', '13']]) {
          await page.getByRole('button', { name: title, exact: true }).click();
          await page.locator('.user', { hasText: title }).waitFor();
          assert.equal(await model.inputValue(), which, `${title}, ${how}`);
          await openSettings(page);
          assert.equal(await page.getByLabel('System prompt').inputValue(), system);
          assert.equal(await page.getByLabel('Max tokens').inputValue(), tokens);
          await closeDialog(page);
        }
      }
      // In the middle of a conversation, too: the answers say whose they are.
      await model.selectOption(one);
      sent = await sends('And now');
      assert.deepEqual([sent.model, sent.messages.length], [one, 4]);
      await finished(page, 2);
      assert.deepEqual(await answers(page).locator('.who').allTextContents(), [two, one]);
      assert.ok(await message(page).isVisible());
    });

    await check('a conversation with a model that this server does not have says so, and goes on with another', url, async (page) => {
      await ready(page);
      await page.getByLabel('A file of conversations').setInputFiles({ name: 'x.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify({
        format: 'gimbal-conversations', version: 1, conversations: [{ title: 'old', model: 'gone-model', turns: { q: { id: 'q', parent: '', role: 'user', text: 'a question', at: 1 } }, chosen: { '': 'q' } }] })) });
      await page.waitForFunction(() => document.querySelector('.model select').value === 'gone-model');
      await ask(page, 'Who are you?');
      await page.getByText(/gone-model/, { exact: false }).last().waitFor();
      await page.locator('.assistant .wrong', { hasText: 'gone-model' }).waitFor();
      await page.locator('.model select').selectOption(two);
      await page.getByRole('button', { name: 'Try again' }).click();
      await page.getByText('2 of 2').waitFor();
      await finished(page);
      assert.equal(await answers(page).locator('.who').textContent(), two);
    }, { expected: /404/ });

    await check('what runs where shows the model that is chosen, and says what is of all of them', `${url}/#/where`, async (page) => {
      const explained = async (id) => (await (await fetch(`${url}/v1/explain/${id}`)).json()).workers[0];
      const weights = () => page.getByRole('row', { name: /^Weights/ }).locator('.number').textContent();
      for (const id of [one, two]) { // both are loaded
        await fetch(`${url}/v1/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ model: id, prompt: 'x', max_tokens: 1 }) });
        assert.ok(await explained(id));
      }
      await page.locator('.where-inside > .row select').selectOption(one);
      await page.getByText(new RegExp(`^${one}: llama`)).waitFor();
      const first = await weights();
      await page.locator('.where-inside > .row select').selectOption(two);
      await page.getByText(new RegExp(`^${two}: llama`)).waitFor();
      assert.notEqual(await weights(), first);
      await page.getByText('of the 2 loaded models together').waitFor();
      await page.locator('.chosen', { hasText: 'embed' }).waitFor();
      await page.locator('.ops button[aria-label*="attn_q,"]').first().click();
      assert.match(await page.locator('.chosen').textContent(), /mat_mul q8_0/);
      // Steps are counted by model, so that a share of the memory's limit is of the one that is shown.
      const steps = (m, id) => m.get(`gimbal_model_steps_total{model="${id}"}`);
      const before = await metrics(url);
      await underLoad({ url, model: two }, 2, async () => {
        for (let m = before; steps(m, two) < steps(before, two) + 50; ) m = await metrics(url);
      });
      const after = await metrics(url);
      assert.ok(steps(after, one) <= steps(before, one) + 3, 'the few that were not told yet'); // a worker tells what it counted when it is asked
      assert.equal(steps(after, one) + steps(after, two), after.get('gimbal_steps_total'));
    });
  } finally {
    await server.end();
  }

  const tidy = await serve(program, 'default', kSecond, '--keep-alive', '1');
  try {
    await check('a model that nobody asks is given back, the page says so, and it comes back when it is asked', `${tidy.url}/#/where`, async (page) => {
      for (let time = 0; time < 2; time++) {
        await page.getByText('This model is not loaded: the first request loads it.').waitFor();
        assert.equal(await page.getByRole('row', { name: /^Weights/ }).count(), 0);
        await underLoad(tidy, 1, () => page.getByRole('row', { name: /^Weights/ }).waitFor());
      }
      await page.getByText('This model is not loaded').waitFor();
      // What was counted stays: a counter that became less would be read as a restart.
      const before = await metrics(tidy.url);
      assert.ok(before.get('gimbal_steps_total') > 100);
      await page.getByRole('link', { name: 'Chat' }).click();
      await ready(page);
      await ask(page, 'Once upon a time');
      await finished(page);
      assert.ok((await metrics(tidy.url)).get('gimbal_steps_total') >= before.get('gimbal_steps_total'));
    });
  } finally {
    await tidy.end();
  }
}
