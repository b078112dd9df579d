// Shapes that users stumbled over: words that break, charts and labels that do not stand on one line, controls over texts.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { answers, ask, check, closeDialog, delta, finished, load, message, openSettings, ready, scripted, underLoad } from './rig.mjs';

const source = (path) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8'); // run.sh copies this file to build/page-test

// Boxes of the elements: [{ left, right, top, bottom, text }].
const boxes = (page, selector) => page.locator(selector).evaluateAll((all) => all.map((el) => {
  const { left, right, top, bottom } = el.getBoundingClientRect();
  return { left, right, top, bottom, text: el.textContent };
}));
const apart = (a, b) => a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
const lines = (tops) => new Set(tops.map(Math.round)).size;

// What the server does with a request that has no such field, from its own table.
async function defaults() {
  const table = await source('src/runtime/sampling_table.h'), members = await source('include/gimbal/sampling.h');
  return (name) => {
    const own = new RegExp(`\\.openai = \\{"${name}", [^,}]+, [^,}]+, ([-\\d.]+)`).exec(table)?.[1];
    return Number(own ?? new RegExp(`\\b${name} = ([-\\d.]+)`).exec(members)[1]);
  };
}

export async function shape({ url }) {
  for (const [width, colorScheme] of [[1280, 'light'], [1280, 'dark'], [390, 'light']])
    await check(`charts at ${width}, ${colorScheme}: titles in one line, charts at one height, one kind of letters`, `${url}/#/where`, async (page) => {
      await page.getByRole('row', { name: /^Weights/ }).waitFor();
      await page.getByRole('button', { name: 'Look again' }).waitFor();
      const broken = await page.locator('.plot figcaption b, .plot .big').evaluateAll((all) => all.filter((el) => {
        const range = document.createRange();
        range.selectNodeContents(el);
        return new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1;
      }).map((el) => el.textContent));
      assert.deepEqual(broken, []);
      const cards = await boxes(page, '.plot'), charts = await boxes(page, '.plot .canvas');
      assert.ok(cards.length >= 3 && charts.length === cards.length);
      for (const card of cards) { // of one row
        const row = charts.filter((_, i) => Math.round(cards[i].top) === Math.round(card.top));
        assert.equal(lines(row.map((c) => c.top)), 1, 'charts of a row begin at one height');
        assert.equal(lines(row.map((c) => c.bottom)), 1);
      }
      const fonts = await page.locator('.plot b, .plot .big, .plot small, .where h3, .where h3 *, .where h4, .where h4 *').evaluateAll((all) => [...new Set(all.map((el) => getComputedStyle(el).fontFamily))]);
      assert.equal(fonts.length, 1, fonts.join(' | '));
    }, { width, colorScheme });

  await check('a chart without data says so, and its time axis follows the data', `${url}/#/where`, async (page) => {
    const chart = page.locator('.plot').first();
    await page.getByRole('row', { name: /^Weights/ }).waitFor();
    await chart.getByText('Nothing was computed in this time.').waitFor();
    await underLoad({ url, model: (await (await fetch(`${url}/v1/models`)).json()).data[0].id }, 2, async () => {
      await chart.getByText('Nothing was computed in this time.').waitFor({ state: 'detached' });
      // The line reaches the left quarter long before two minutes are over.
      await page.waitForFunction(() => {
        const probe = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
        probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--w1').trim();
        probe.fillRect(0, 0, 1, 1);
        const [r, g, b] = probe.getImageData(0, 0, 1, 1).data, canvas = document.querySelector('.plot canvas');
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        let left = canvas.width;
        for (let i = 0; i < data.length; i += 4) if (data[i] === r && data[i + 1] === g && data[i + 2] === b) left = Math.min(left, (i / 4) % canvas.width);
        return left < 44 + (canvas.width - 44) / 4;
      }, undefined, { timeout: 60_000 });
    });
  });

  for (const width of [390, 1280])
    await check(`the view follows an answer to its last line, and nothing lies upon the conversation, at ${width}`, url, async (page) => {
      await ready(page);
      const end = () => page.locator('.log').evaluate((el) => el.scrollHeight - el.scrollTop - el.clientHeight);
      const lastLine = async (n) => {
        await finished(page, n);
        await page.evaluate(() => new Promise((then) => requestAnimationFrame(() => requestAnimationFrame(then))));
        assert.ok(await end() <= 1, `${await end()} pixels below the view`);
        const [log] = await boxes(page, '.log'), facts = (await boxes(page, '.assistant .facts')).at(-1);
        assert.ok(facts.bottom <= log.bottom && facts.text.includes('tokens'), `${facts.text} ends at ${facts.bottom}, the view at ${log.bottom}`);
      };
      const paragraphs = (n) => Array.from({ length: n }, (_, i) => delta({ content: `Paragraph ${i}, which is so long that it takes more than one line of a narrow window.\n\n` }));
      for (let n = 1; n <= 3; n++) {
        await scripted(page, [...paragraphs(20), delta({ content: 'The end.' }, { finish_reason: 'length' }), { choices: [], usage: { prompt_tokens: 5, completion_tokens: 200 } }]);
        await ask(page, `Question ${n}`);
        await lastLine(n);
      }
      await page.locator('.log').evaluate((el) => { el.scrollTop = 300; });
      const button = page.getByRole('button', { name: 'To the end' });
      await button.waitFor();
      const [at] = await boxes(page, '.to-end');
      for (const [other] of [await boxes(page, '.log'), await boxes(page, '.composer')]) assert.ok(apart(at, other), `“To the end” lies over ${other.text.slice(0, 40)}`);
      await button.click();
      await button.waitFor({ state: 'detached' });
      assert.ok(await end() <= 1);
      // A field that grows takes room from the log, not from its last line.
      await message(page).fill('one\ntwo\nthree\nfour\nfive');
      await page.waitForFunction(() => { const el = document.querySelector('.log'); return el.scrollHeight - el.scrollTop - el.clientHeight <= 1; });
    }, { width });

  await check('settings: names and boxes stand on lines, and an empty box shows the default that counts', url, async (page) => {
    await ready(page);
    await openSettings(page);
    const rows = await page.locator('.fields label').evaluateAll((all) => all.map((el) => {
      const range = document.createRange(), box = el.querySelector('input, select');
      range.selectNodeContents(el.firstChild);
      return { row: Math.round(el.getBoundingClientRect().top), name: Math.round(range.getBoundingClientRect().top), box: Math.round(box.getBoundingClientRect().top) };
    }));
    assert.ok(new Set(rows.map((r) => r.row)).size > 1);
    for (const { row, name, box } of rows) {
      const first = rows.find((r) => r.row === row);
      assert.deepEqual([name, box], [first.name, first.box]);
    }
    const of = await defaults();
    for (const name of ['temperature', 'top_p', 'top_k', 'min_p', 'typical_p', 'repeat_penalty', 'frequency_penalty', 'presence_penalty']) {
      const shown = await page.locator(`[name=${name}]`).getAttribute('placeholder');
      assert.equal(Number.parseFloat(shown), of(name), `${name}: ${shown}`);
    }
    for (const [name, shown] of [['seed', 'another one each time'], ['max_tokens', 'until the context is full']]) assert.equal(await page.locator(`[name=${name}]`).getAttribute('placeholder'), shown);
    const empty = await page.getByRole('dialog').locator('input, textarea').evaluateAll((all) => all.filter((el) => !el.value && !el.placeholder).map((el) => el.name));
    assert.deepEqual(empty, []);
    await closeDialog(page);
  }, { width: 1280 });

  await check('an answer that ends at the context says so', url, async (page) => {
    await ready(page);
    await scripted(page, [delta({ content: 'x' }, { finish_reason: 'length' })]);
    const [request] = await Promise.all([page.waitForRequest('**/v1/chat/completions'), ask(page, 'a')]);
    assert.equal(request.postDataJSON().max_tokens, undefined, 'no limit that the user did not choose');
    await answers(page).getByText('Cut off: the model’s context is full.').waitFor();
  });

  for (const width of [390, 1280])
    await check(`the copy button of a piece of code covers none of it, at ${width}`, url, async (page) => {
      await load(page, { text: '```python\nfirst = "' + 'a long line '.repeat(30) + '"\nsecond = 2\n```\n\n    indented\n' });
      await page.locator('.copy-code').first().waitFor();
      const shown = await page.locator('.code-frame').evaluateAll((all) => all.map((frame) => [frame.querySelector('pre').getBoundingClientRect(), frame.querySelector('button').getBoundingClientRect()].map(({ left, right, top, bottom }) => ({ left, right, top, bottom }))));
      assert.equal(shown.length, 2);
      for (const [code, button] of shown) assert.ok(apart(code, button));
      assert.equal(await page.locator('.code-head span').first().textContent(), 'python');
    }, { width });

  await check('characters that turn a text around are shown by their names, and copied as they are', url, async (page) => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url });
    const turned = (name) => `${name} \u202Egpj.exe\u202C and \u2066(1)\u2069`;
    const text = `See ${turned('evil')}.\n\n\`\`\`js\n// ${turned('code')}\n\`\`\`\n\n[${turned('link')}](https://example.org/) $x\u202E$`;
    await load(page, { text, reasoning: turned('reasoning'), error: turned('error'), calls: [{ id: 'c', name: turned('call'), arguments: JSON.stringify({ a: turned('argument') }) }] });
    await page.locator('.assistant .rich', { hasText: 'evil U+202Egpj.exeU+202C and U+2066(1)U+2069' }).waitFor();
    const visible = () => page.evaluate(() => [document.title, document.body.textContent, ...[...document.querySelectorAll('[title], [aria-label]')].map((el) => el.title + el.ariaLabel)].join('\n'));
    assert.doesNotMatch(await visible(), /[\u202A-\u202E\u2066-\u2069]/);
    const [mark, word] = [await boxes(page, '.turning'), await page.locator('.rich p').first().textContent()];
    assert.ok(mark.length >= 9 && mark.every((m) => m.right > m.left || m.text), word);
    await page.locator('.assistant .tools button').first().click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), text);
    await page.locator('.copy-code').first().click();
    await page.locator('.copy-code', { hasText: 'Copied' }).waitFor();
    assert.equal((await page.evaluate(() => navigator.clipboard.readText())).trim(), `// ${turned('code')}`);
    // What the user pasted, too.
    await ready(page);
    await scripted(page, [delta({ content: 'x' }, { finish_reason: 'stop' })]);
    await page.getByRole('button', { name: 'New conversation' }).click();
    await ask(page, turned('question'));
    await finished(page);
    assert.doesNotMatch(await visible(), /[\u202A-\u202E\u2066-\u2069]/);
  });
}
