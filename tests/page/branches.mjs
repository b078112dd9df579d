// Branches of answers: from any token on, and two of them side by side with the place where they part.
import assert from 'node:assert/strict';
import { answers, ask, check, delta, finished, load, ready, scripted, setting } from './rig.mjs';

const said = (...pieces) => [...pieces.map((content) => delta({ content })), delta({}, { finish_reason: 'stop' })];
const button = (page, name) => page.getByRole('button', { name, exact: true });
const kept = (page, title) => page.getByRole('region', { name: title }).locator('.same').textContent();
const part = (page, title) => page.getByRole('region', { name: title }).locator('mark').textContent();

export async function branchesOf({ url }) {
  await check('a branch keeps the tokens before it, and both versions stand side by side', url, async (page) => {
    await ready(page);
    await setting(page, { Seed: '7' });
    await scripted(page, said('One', ' two', ' three', '\n', 'four'));
    await ask(page, 'Count');
    await finished(page);
    assert.equal(await button(page, 'Compare').count(), 0, 'there is one version');
    await button(page, 'Branch').click();
    const tokens = page.getByRole('group', { name: 'Tokens of the answer' }).getByRole('button');
    assert.deepEqual(await tokens.allTextContents(), [' two', ' three', '↵', 'four']);
    await button(page, 'Cancel').click();
    assert.equal(await tokens.count(), 0);
    await button(page, 'Branch').click();
    await scripted(page, said(' 3', ' and so on'));
    const [request] = await Promise.all([page.waitForRequest('**/v1/chat/completions'), button(page, 'Branch at token 3: three').click()]);
    const asked = request.postDataJSON();
    assert.deepEqual(asked.messages, [{ role: 'user', content: 'Count' }, { role: 'assistant', content: 'One two' }]);
    assert.equal(asked.continue_final_message, true);
    assert.ok(Number.isInteger(asked.seed) && asked.seed !== 7, 'another seed, although the settings have one');
    await page.getByText('2 of 2').waitFor();
    await finished(page);
    assert.equal((await answers(page).locator('.said > .rich').textContent()).trim(), 'One two 3 and so on');
    await button(page, 'Compare').click();
    await page.getByText('They part at token 3, character 9.').waitFor();
    for (const title of ['Version 1', 'Version 2']) assert.equal(await kept(page, title), 'One two ');
    assert.equal(await part(page, 'Version 2'), '3');
    assert.equal(await part(page, 'Version 1'), 'three');

    // A branch of the branch, at a token that it kept; of three versions, two are chosen.
    await button(page, 'Branch').click();
    await scripted(page, said(' hundred'));
    const [again] = await Promise.all([page.waitForRequest('**/v1/chat/completions'), button(page, 'Branch at token 2: two').click()]);
    assert.equal(again.postDataJSON().messages[1].content, 'One');
    await page.getByText('3 of 3').waitFor();
    await finished(page);
    await button(page, 'Compare').click();
    await page.getByText('They part at token 2, character 5.').waitFor();
    await page.getByLabel('Compare with').selectOption({ label: 'Version 1' });
    assert.equal(await part(page, 'Version 1'), 'two');
    await page.reload();
    await page.getByText('3 of 3').waitFor();
    await button(page, 'Branch').click();
    assert.deepEqual(await tokens.allTextContents(), [' hundred'], 'the browser keeps where tokens end');
  });

  // The most probable answer is the same again, whatever the seed, with the space before the token.
  await check('the server continues a branch where the answer was', url, async (page) => {
    await ready(page);
    await setting(page, { 'Max tokens': '30', Temperature: '0' });
    await ask(page, 'Once upon a time');
    await finished(page);
    await button(page, 'Branch').click();
    const tokens = page.getByRole('group', { name: 'Tokens of the answer' }).getByRole('button');
    const at = (await tokens.allTextContents()).findIndex((text, i) => i > 8 && /^ \w/.test(text));
    assert.ok(at > 8, 'a token with a space');
    const [request, response] = await Promise.all([page.waitForRequest('**/v1/chat/completions'), page.waitForResponse('**/v1/chat/completions'), tokens.nth(at).click()]);
    assert.equal(response.status(), 200);
    const begun = request.postDataJSON().messages[1].content;
    await page.getByText('2 of 2').waitFor();
    await finished(page);
    await button(page, 'Compare').click();
    const [first, second] = await Promise.all(['Version 1', 'Version 2'].map((title) => page.getByRole('region', { name: title }).locator('.words').textContent()));
    assert.ok(first.startsWith(begun) && first.length > begun.length);
    assert.ok(second.startsWith(first) && second.length > first.length, `${second} begins with ${first}`);
  });

  await check('an answer with reasoning has no branch, and equal versions say so', url, async (page) => {
    await load(page, { text: 'Yes.', reasoning: 'Hm.', pieces: [3, 4] });
    await finished(page);
    assert.equal(await button(page, 'Branch').count(), 0);
    await load(page, { text: 'Yes.', pieces: [3, 400] });
    await page.getByRole('heading', { name: 'imported 0' }).or(page.getByText('Yes.').first()).first().waitFor();
    assert.equal(await button(page, 'Branch').count(), 0, 'pieces that the text does not have');
    await load(page, { text: 'Yes.', pieces: [3, 4] });
    await ready(page);
    await scripted(page, said('.'));
    await button(page, 'Branch').click();
    await button(page, 'Branch at token 2: .').click();
    await page.getByText('2 of 2').waitFor();
    await finished(page);
    await button(page, 'Compare').click();
    await page.getByText('Both say the same.').waitFor();
  });
}
