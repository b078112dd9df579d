// The chat: what a user does with it, with the real server.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { answers, ask, check, fileOf, finished, load, message, ready, serve, slow } from './rig.mjs';

export async function chat(program, server) {
  const { url } = server;

  await check('a question is answered, and the answer says what it took', url, async (page) => {
    await ask(page, 'Once upon a time');
    await finished(page);
    assert.ok((await answers(page).locator('.rich').textContent()).length > 20);
    assert.match(await answers(page).locator('.facts').textContent(), /\d+ tokens/);
    assert.match(await page.getByRole('status').textContent(), /^Answer: /);
  });

  await check('what is asked before the models are known waits for their names', url, async (page) => {
    let names;
    const asked = new Promise((go) => { names = go; });
    await page.route('**/v1/models', async (route) => { await asked; await route.continue(); });
    await page.reload({ waitUntil: 'commit' });
    await message(page).waitFor();
    await ask(page, 'Once upon a time');
    await page.getByRole('button', { name: 'Stop', exact: true }).click(); // which needs no names
    await page.getByText('Stopped by you.').waitFor();
    await ask(page, 'Again');
    const request = page.waitForRequest('**/v1/chat/completions');
    names();
    assert.equal((await request).postDataJSON().model, server.model);
    await finished(page, 2);
    assert.deepEqual(await answers(page).locator('.who').allTextContents(), ['model', server.model]);
  });

  await check('without names of models there is no answer, and it says why', url, async (page) => {
    await page.route('**/v1/models', (route) => route.fulfill({ json: { object: 'list', data: [] } }));
    await page.reload();
    await ask(page, 'Once upon a time');
    await page.locator('.assistant .wrong', { hasText: 'The server has no models.' }).waitFor();
    await page.unroute('**/v1/models');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.locator('.assistant .rich').waitFor();
    await finished(page);
  });

  await check('stop keeps what came', url, async (page) => {
    await ready(page);
    await slow(page, 3000);
    await ask(page, 'Once upon a time');
    await page.waitForFunction(() => document.querySelector('.assistant .rich')?.textContent.length > 5);
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.getByText('Stopped by you.').waitFor();
    const text = await answers(page).locator('.rich').textContent();
    assert.ok(text.length > 5);
    await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
    await page.waitForTimeout(300);
    assert.equal(await answers(page).locator('.rich').textContent(), text);
  });

  await check('Escape stops, and one can ask again at once', url, async (page) => {
    await ready(page);
    const fast = await slow(page, 3000);
    await ask(page, 'Once upon a time');
    await page.waitForFunction(() => document.querySelector('.assistant .rich')?.textContent.length > 5);
    await page.keyboard.press('Escape');
    await page.getByText('Stopped by you.').waitFor();
    await fast();
    await ask(page, 'Again');
    await finished(page, 2);
  });

  await check('edit and try again make branches that one can go between', url, async (page) => {
    await ask(page, 'The first question');
    await finished(page);
    const first = await answers(page).locator('.rich').textContent();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('2 of 2').waitFor();
    await finished(page);
    await page.getByRole('button', { name: 'The version before' }).click();
    assert.equal(await answers(page).locator('.rich').textContent(), first);

    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Your changed message').fill('Another question');
    await page.getByRole('button', { name: 'Send changed' }).click();
    await finished(page);
    assert.equal(await page.locator('.user .words').textContent(), 'Another question');
    await page.locator('.user').getByRole('button', { name: 'The version before' }).click();
    assert.equal(await page.locator('.user .words').textContent(), 'The first question');
    assert.equal(await answers(page).locator('.rich').textContent(), first);
  });

  await check('a reload in the middle of an answer keeps what was received', url, async (page) => {
    await ready(page);
    const fast = await slow(page, 3000);
    await ask(page, 'Once upon a time');
    await page.waitForFunction(() => document.querySelector('.assistant .rich')?.textContent.length > 20);
    const before = await answers(page).locator('.rich').textContent();
    await page.reload(); // which this network can do: the browser has the page already
    await fast();
    await page.getByText('Cut off:').waitFor();
    const after = await answers(page).locator('.rich').textContent();
    assert.ok(after.startsWith(before.trim()), `${JSON.stringify(after)} begins with ${JSON.stringify(before)}`);
    await page.getByRole('button', { name: 'Try again' }).click();
    await finished(page);
  });

  await check('settings and files are sent, conversations stay, export is what import reads', url, async (page) => {
    await page.getByRole('button', { name: 'Settings' }).click();
    await page.getByLabel('System prompt').fill('You tell stories.');
    await page.getByLabel('Temperature').fill('0');
    await page.getByLabel('Max tokens').fill('12');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('input[type=file][multiple]').setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('The cat is red.') });
    await page.getByText('notes.txt').waitFor();
    const [request] = await Promise.all([page.waitForRequest('**/v1/chat/completions'), ask(page, 'Tell me')]);
    const sent = request.postDataJSON();
    assert.equal(sent.temperature, 0);
    assert.equal(sent.max_tokens, 12);
    assert.equal(sent.messages[0].content, 'You tell stories.');
    assert.match(sent.messages[1].content, /Tell me[\s\S]*notes\.txt[\s\S]*The cat is red\./);
    await finished(page);
    assert.match(await answers(page).locator('.facts').textContent(), /^12 tokens · /);
    await answers(page).getByText('Cut off at 12 tokens: “Max tokens” in the settings sets this limit.').waitFor();

    await page.locator('input[type=file][multiple]').setInputFiles({ name: 'x.png', mimeType: 'image/png', buffer: Buffer.from([0x89, 0x50, 0xff, 0]) });
    await page.getByText('x.png is no picture that this browser can read').waitFor();

    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export all' }).click()]);
    const text = await readFile(await file.path(), 'utf8');
    const answer = await answers(page).locator('.rich').textContent();
    await page.reload();
    await finished(page);
    assert.equal(await answers(page).locator('.rich').textContent(), answer);
    await page.getByRole('button', { name: /^Delete “Tell me”/ }).click();
    await page.getByRole('button', { name: 'Delete?' }).click();
    await page.getByText('Ask something.').waitFor();
    await page.getByLabel('A file of conversations').setInputFiles({ name: 'all.json', mimeType: 'application/json', buffer: Buffer.from(text) });
    await finished(page);
    assert.equal(await answers(page).locator('.rich').textContent(), answer);
    await page.getByLabel('A file of conversations').setInputFiles({ ...fileOf({}), buffer: Buffer.from('{"a":1}') });
    await page.getByText('This is not a file of conversations').waitFor();
  });

  await check('tool calls and reasoning are folded; the result of a tool goes to the model', url, async (page) => {
    await load(page, { text: 'Let me look.', reasoning: 'The user wants the weather.', calls: [{ id: 'c1', name: 'weather', arguments: '{"city":"Oslo"}' }] });
    await page.getByText('Reasoning', { exact: true }).waitFor();
    assert.equal(await page.getByText('The user wants the weather.').isVisible(), false);
    await page.getByText('Reasoning', { exact: true }).click();
    assert.equal(await page.getByText('The user wants the weather.').isVisible(), true);
    await page.getByLabel('What the tool says').fill('3 degrees');
    await page.locator('select').first().selectOption(server.model);
    const [request] = await Promise.all([page.waitForRequest('**/v1/chat/completions'), page.getByRole('button', { name: 'Give to the model' }).click()]);
    const sent = request.postDataJSON().messages;
    assert.equal(sent[1].tool_calls[0].function.arguments, '{"city":"Oslo"}');
    assert.deepEqual(sent[2], { role: 'tool', tool_call_id: 'c1', content: '3 degrees' });
    await finished(page, 2);
  });

  await check('keyboard alone', url, async (page) => {
    const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim() || document.activeElement?.id);
    const tabTo = async (what) => {
      for (let i = 0; i < 40; i++) {
        await page.keyboard.press('Tab');
        if ((await focused()) === what) {
          const ring = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
          assert.notEqual(ring, 'none', `the focus on ${what} can be seen`);
          return;
        }
      }
      assert.fail(`Tab never comes to ${what}`);
    };
    await ready(page);
    await tabTo('message');
    await page.keyboard.type('Once upon a time');
    await page.keyboard.press('Enter');
    await finished(page);
    await page.keyboard.press('Shift+Tab');
    await tabTo('message');
    for (let i = 0; i < 8 && (await focused()) !== 'Try again'; i++) await page.keyboard.press('Shift+Tab');
    assert.equal(await focused(), 'Try again');
    await page.keyboard.press('Enter');
    await page.getByText('2 of 2').waitFor();
    await finished(page);
    await page.evaluate(() => { document.activeElement.blur(); });
    await tabTo('Settings');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    assert.equal(await focused(), 'Settings');
    await page.evaluate(() => { document.activeElement.blur(); });
    await tabTo('Edit');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Your changed message');
    await page.keyboard.press('Control+A');
    await page.keyboard.type('Another beginning');
    await page.keyboard.press('Enter');
    await page.locator('.user', { hasText: 'Another beginning' }).waitFor();
    await finished(page);
    await page.evaluate(() => { document.activeElement.blur(); });
    await tabTo('‹');
    await page.keyboard.press('Enter');
    await page.locator('.user', { hasText: 'Once upon a time' }).waitFor();
    await page.evaluate(() => { document.activeElement.blur(); });
    await tabTo('New conversation');
    await page.keyboard.press('Enter');
    await page.getByText('Ask something.').waitFor();
    await page.waitForFunction(() => document.activeElement.id === 'message'); // one can write at once
    await page.evaluate(() => { document.activeElement.blur(); });
    await tabTo('×');
    await page.keyboard.press('Enter');
    assert.equal(await focused(), 'Delete?');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => !document.querySelector('.conversations li'));
    await page.evaluate(() => { document.activeElement.blur(); });
    await tabTo('What runs where');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/#/where');
  });

  const guarded = await serve(program, '--api-key', 'open sesame');
  try {
    await check('a server with a key: the page asks for it, and keeps it for the tab', guarded.url, async (page) => {
      await page.getByRole('button', { name: 'Not now' }).click();
      await page.getByRole('button', { name: 'Give an API key' }).click();
      await page.getByRole('textbox', { name: 'API key' }).fill('wrong');
      await page.keyboard.press('Enter');
      await page.getByText('The key is not right.').waitFor();
      await page.getByRole('textbox', { name: 'API key' }).fill('open sesame');
      await page.keyboard.press('Enter');
      await ready(page);
      await ask(page, 'Once upon a time');
      await finished(page);
      await page.reload();
      await ready(page);
      assert.equal(await page.getByRole('dialog').count(), 0);
    }, { expected: /401/ });
  } finally {
    await guarded.end();
  }
}
