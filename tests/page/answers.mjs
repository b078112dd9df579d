// What is done with answers: copied, with reasoning and tool calls that come in pieces, cut off, refused; and every setting.
import assert from 'node:assert/strict';
import { answers, ask, check, closeDialog, delta, finished, load, message, openSettings, ready, scripted, setting } from './rig.mjs';

const kTools = JSON.stringify([{ type: 'function', function: { name: 'weather', description: 'of a city', parameters: { type: 'object', properties: { city: { type: 'string' } } } } }]);

// Every field of the settings, a value for it, and what the request has to say then.
const kSettings = [
  ['Temperature', '0.5', 'temperature', 0.5], ['Top p', '0.9', 'top_p', 0.9], ['Top k', '40', 'top_k', 40], ['Min p', '0.02', 'min_p', 0.02],
  ['Typical p', '0.95', 'typical_p', 0.95], ['Repeat penalty', '1.1', 'repeat_penalty', 1.1], ['Frequency penalty', '0.1', 'frequency_penalty', 0.1],
  ['Presence penalty', '-0.1', 'presence_penalty', -0.1], ['Seed', '7', 'seed', 7], ['Max tokens', '30', 'max_tokens', 30],
  ['Stop sequences', 'The end.\nqq', 'stop', ['The end.', 'qq']], ['Tools', kTools, 'tools', JSON.parse(kTools)],
];

export async function answersOf({ url }) {
  await check('every setting is sent, the server takes it, and what is left empty is left to the server', url, async (page) => {
    await ready(page);
    const [plain] = await Promise.all([page.waitForRequest('**/v1/chat/completions'), ask(page, 'Once')]);
    assert.deepEqual(Object.keys(plain.postDataJSON()).sort(), ['messages', 'model', 'stream', 'stream_options']);
    await finished(page);
    await page.getByRole('button', { name: 'New conversation' }).click();

    await openSettings(page);
    const fields = await page.getByRole('dialog').locator('input, textarea, select').evaluateAll((all) => all.map((el) => el.name));
    const known = [...kSettings.map(([, , name]) => name), 'system', 'reasoning_effort'];
    assert.deepEqual(fields.sort(), known.sort(), 'every field of the settings is in this test');
    await closeDialog(page);

    await setting(page, Object.fromEntries(kSettings.map(([label, text]) => [label, text])));
    const send = async (text) => {
      const [request, response] = await Promise.all([page.waitForRequest('**/v1/chat/completions'), page.waitForResponse('**/v1/chat/completions'), ask(page, text)]);
      assert.equal(response.status(), 200, 'the server takes all of it');
      return request.postDataJSON();
    };
    const sent = await send('Once upon a time');
    for (const [, , name, value] of kSettings) assert.deepEqual(sent[name], value, name);
    await finished(page);
    // The same seed: the same answer.
    const first = await answers(page).locator('.rich').textContent();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('2 of 2').waitFor();
    await finished(page);
    assert.equal(await answers(page).locator('.rich').textContent(), first);

    await page.getByRole('button', { name: 'Settings' }).click();
    await page.getByLabel('Reasoning').selectOption('low');
    await page.getByLabel('Tools').fill('[');
    await page.getByRole('button', { name: 'Save' }).click();
    await ask(page, 'More');
    await page.locator('.assistant .wrong', { hasText: 'The tools in the settings are not JSON.' }).waitFor();
    await setting(page, { Tools: '' });
    await scripted(page, [delta({ content: 'x' }, { finish_reason: 'stop' })]);
    const [asked] = await Promise.all([page.waitForRequest('**/v1/chat/completions'), page.getByRole('button', { name: 'Try again' }).last().click()]);
    assert.equal(asked.postDataJSON().reasoning_effort, 'low');
    assert.equal(asked.postDataJSON().tools, undefined);
  });

  await check('try again asks the same, and edit sends the changed message with what was before it', url, async (page) => {
    await ready(page);
    await setting(page, { 'Max tokens': '40' }); // so that three questions have room in the context
    const sends = async (act) => (await Promise.all([page.waitForRequest('**/v1/chat/completions'), act()]))[0].postDataJSON();
    const first = await sends(() => ask(page, 'One'));
    await finished(page);
    const again = await sends(() => page.getByRole('button', { name: 'Try again' }).click());
    assert.deepEqual(again.messages, first.messages);
    await page.getByText('2 of 2').waitFor();
    await finished(page);
    const second = await answers(page).locator('.rich').textContent();
    await sends(() => ask(page, 'Two'));
    await finished(page, 2);
    await page.locator('.user').nth(1).getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Your changed message').fill('Three');
    const changed = await sends(() => page.keyboard.press('Enter'));
    assert.deepEqual(changed.messages.map((m) => m.role), ['user', 'assistant', 'user']);
    assert.equal(changed.messages[1].content.trim(), second.trim(), 'the branch that is shown');
    assert.equal(changed.messages[2].content, 'Three');
  });

  await check('reasoning and tool calls that come in pieces are whole, folded, and their results go back in order', url, async (page) => {
    await ready(page);
    const call = (index, part) => delta({ tool_calls: [{ index, ...part }] });
    await scripted(page, [
      delta({ role: 'assistant', reasoning_content: 'Two cities, ' }), delta({ reasoning_content: 'two calls.' }), delta({ content: 'One ' }), delta({ content: 'moment.' }),
      call(0, { id: 'c0', type: 'function', function: { name: 'weather', arguments: '' } }), call(0, { function: { arguments: '{"city":' } }), call(0, { function: { arguments: '"Oslo"}' } }),
      call(1, { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Rome"}' } }), delta({}, { finish_reason: 'tool_calls' }),
    ]);
    await ask(page, 'How is the weather?');
    await finished(page);
    assert.equal((await answers(page).locator('.said > .rich').textContent()).trim(), 'One moment.');
    const reasoning = answers(page).locator('details', { hasText: 'Reasoning' });
    assert.equal(await reasoning.evaluate((el) => el.open), false);
    assert.match(await reasoning.textContent(), /Two cities, two calls\./);
    const results = page.getByLabel('What the tool says');
    assert.equal(await results.count(), 2);
    await results.first().fill('3 degrees');
    await page.getByRole('button', { name: 'Give to the model' }).first().click();
    await results.first().fill('30 degrees');
    await scripted(page, [delta({ content: 'Cold and hot.' }, { finish_reason: 'stop' })]);
    const [request] = await Promise.all([page.waitForRequest('**/v1/chat/completions'), page.getByRole('button', { name: 'Give to the model' }).click()]);
    const [user, assistant, ...tools] = request.postDataJSON().messages;
    assert.equal(user.content, 'How is the weather?');
    assert.deepEqual(assistant.tool_calls.map((c) => [c.id, c.function.name, c.function.arguments]), [['c0', 'weather', '{"city":"Oslo"}'], ['c1', 'weather', '{"city":"Rome"}']]);
    assert.deepEqual(tools, [{ role: 'tool', tool_call_id: 'c0', content: '3 degrees' }, { role: 'tool', tool_call_id: 'c1', content: '30 degrees' }]);
    await answers(page).locator('.rich', { hasText: 'Cold and hot.' }).waitFor();
    assert.equal(await answers(page).first().locator('details[open]').count(), 0, 'what is done is folded');
  });

  await check('copy: an answer as it was written, and a piece of code; also where the page may not use the clipboard', url, async (page) => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url });
    const text = 'Some *words*.\n\n```js\nlet x = 1;\n```';
    await load(page, { text });
    const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
    // It says so for a moment only: who looks is there before.
    const copy = async (button) => {
      const said = await button.evaluateHandle((el) => ({ done: new Promise((then) => new MutationObserver(() => el.textContent === 'Copied' && then()).observe(el, { childList: true, characterData: true, subtree: true })) }));
      await button.click();
      await said.evaluate((x) => x.done);
    };
    await copy(page.locator('.assistant .tools button').first());
    assert.equal(await clipboard(), text);
    await copy(page.locator('.copy-code'));
    assert.equal((await clipboard()).trim(), 'let x = 1;');
    await page.evaluate(() => { navigator.clipboard.writeText = () => Promise.reject(new Error('not here')); });
    await copy(page.locator('.user .tools button').first());
    assert.equal(await clipboard(), 'a question');
  });

  await check('texts are attached by pasting, dropping and choosing, and can be taken away', url, async (page) => {
    await ready(page);
    const give = (event, name, text) => message(page).evaluate((el, [event, name, text]) => {
      const data = new DataTransfer();
      data.items.add(new File([text], name, { type: 'text/plain' }));
      el.dispatchEvent(event === 'paste' ? new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })
        : new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
    }, [event, name, text]);
    await give('paste', 'pasted.txt', 'one');
    await give('drop', 'dropped.txt', 'two');
    const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.getByRole('button', { name: 'Attach file' }).click()]);
    await chooser.setFiles({ name: 'chosen.txt', mimeType: 'text/plain', buffer: Buffer.from('three') });
    await page.getByText('chosen.txt').waitFor();
    await page.getByRole('button', { name: 'Take dropped.txt away' }).click();
    await page.locator('input[type=file][multiple]').setInputFiles({ name: 'large.txt', mimeType: 'text/plain', buffer: Buffer.alloc(1_000_001, 'x') });
    await page.getByText('large.txt is larger than 1 MB').waitFor();
    await scripted(page, [delta({ content: 'x' }, { finish_reason: 'stop' })]);
    const [request] = await Promise.all([page.waitForRequest('**/v1/chat/completions'), ask(page, 'Read')]);
    const [{ content }] = request.postDataJSON().messages;
    assert.match(content, /^Read[\s\S]*pasted\.txt[\s\S]*one[\s\S]*chosen\.txt[\s\S]*three/);
    assert.doesNotMatch(content, /dropped|two|xxx/);
    await finished(page);
    await page.locator('.user summary', { hasText: 'chosen.txt' }).click();
    await page.locator('.user pre', { hasText: 'three' }).waitFor();
  });

  await check('an answer that fails keeps what came and says why', url, async (page) => {
    await ready(page);
    await scripted(page, [delta({ content: 'The beginning' }), { error: { message: 'the worker is <b>gone</b>' } }]);
    await ask(page, 'a');
    const wrong = (text) => page.locator('.assistant .wrong', { hasText: text }).waitFor();
    await wrong('the worker is <b>gone</b>');
    assert.equal((await answers(page).locator('.rich').textContent()).trim(), 'The beginning');
    await scripted(page, [delta({ content: 'Half' })], '');
    await page.getByRole('button', { name: 'Try again' }).click();
    await wrong('The server ended the answer in the middle.');
    await page.route('**/v1/chat/completions', (route) => route.abort(), { times: 1 });
    await page.getByRole('button', { name: 'Try again' }).click();
    await wrong('The server cannot be reached.');
    await page.route('**/v1/chat/completions', (route) => route.fulfill({ status: 429, json: { error: { message: 'The queue is full.' } } }), { times: 1 });
    await page.getByRole('button', { name: 'Try again' }).click();
    await wrong('The queue is full.');
    await page.getByText('4 of 4').waitFor();
    assert.match(await page.getByRole('status').textContent(), /^No answer: The queue is full/);
  }, { expected: /ERR_FAILED|429/ });

  await check('a browser that keeps nothing: the page says so, and works', url, async (page) => {
    await page.addInitScript(() => { Object.defineProperty(window, 'indexedDB', { value: undefined }); });
    await page.reload();
    await page.getByText('This browser keeps nothing').waitFor();
    await ask(page, 'Once upon a time');
    await finished(page);
  });
}
