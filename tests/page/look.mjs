// How it looks: narrow and wide, light and dark, for people who need contrast, labels or quiet; and the pictures of docs/images.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ask, check, closeDialog, finished, load, openSettings, ready, underLoad } from './rig.mjs';

const axe = readFileSync('node_modules/axe-core/axe.min.js', 'utf8');

// In the colours of now; `contrast`: that rule alone, for the other colours of the same elements.
async function accessible(page, contrast = false) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate((only) => window.axe.run({ resultTypes: ['violations'], ...(only ? { runOnly: ['color-contrast'] } : {}) }), contrast);
  const bad = violations.filter((v) => v.impact === 'serious' || v.impact === 'critical');
  assert.deepEqual(bad.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 120) + ' ' + n.failureSummary.slice(0, 200)).join(' | ')}`), []);
}

async function inBothColours(page) {
  await fits(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  await accessible(page, true);
  await page.emulateMedia({ colorScheme: 'light' });
  await accessible(page);
}

async function fits(page) {
  const [inner, wide] = await page.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
  assert.ok(wide <= inner, `${wide} pixels in a window of ${inner}`);
  const cut = await page.evaluate(() => [...document.querySelectorAll('button, select, input, textarea, a')].filter((el) => {
    const box = el.getBoundingClientRect();
    return box.width > 0 && !el.closest('.table-frame, .unseen, pre, .code-frame') && (box.right > innerWidth + 1 || box.left < -1);
  }).map((el) => el.outerHTML.slice(0, 100)));
  assert.deepEqual(cut, []);
}

const kAnswer = {
  text: 'A *gimbal* keeps what it holds level.\n\n```python\ndef f(x):  # a comment\n    return x + 1\n```\n\n| kind | number |\n|---|---|\n| ring | 3 |\n\nIt turns by $\\alpha = \\frac{a}{b}$. [More](https://example.org/)',
  reasoning: 'What is a gimbal?', calls: [{ id: 'c', name: 'look_up', arguments: '{"word":"gimbal"}' }], tokens: 40, writingMs: 100, firstMs: 9, model: 'a-model-with-a-rather-long-name-Q4_K_M',
};

export async function look({ url, model }, pictures) {
  const shot = async (page, name, colorScheme) => {
    if (!pictures) return;
    await page.emulateMedia({ colorScheme });
    await page.waitForTimeout(1200); // for the plots to be drawn in these colours
    await page.screenshot({ path: join(pictures, name), animations: 'disabled' });
  };
  for (const [width, height] of [[320, 640], [1440, 900]])
    await check(`${width} wide, light and dark: nothing is cut, axe finds nothing serious`, url, async (page) => {
      const narrow = width < 500;
      await ready(page);
      await load(page, kAnswer);
      await page.getByText('keeps what it holds level').waitFor();
      await page.locator('select').first().selectOption(model);
      await inBothColours(page);
      await openSettings(page);
      await inBothColours(page);
      await closeDialog(page);
      if (narrow) {
        await page.getByRole('button', { name: 'Conversations' }).click();
        await inBothColours(page);
      }
      await page.getByRole('button', { name: 'New conversation' }).click();
      await ask(page, 'Once upon a time, there was a little robot');
      await finished(page);
      if (!narrow) await shot(page, 'page-chat.png', 'light');
      await page.getByRole('button', { name: 'Branch', exact: true }).click();
      await inBothColours(page);
      await page.getByRole('group', { name: 'Tokens of the answer' }).getByRole('button').nth(5).click();
      await page.getByText('2 of 2').waitFor();
      await finished(page);
      await page.getByRole('button', { name: 'Compare' }).click();
      await inBothColours(page);

      await page.goto(`${url}/#/where`);
      await page.getByRole('heading', { name: 'What a step computes' }).waitFor();
      await page.getByRole('button', { name: 'Look again' }).waitFor();
      if (pictures)
        await underLoad({ url, model }, 5, async () => {
          await page.waitForTimeout(15_000);
          await shot(page, narrow ? 'page-narrow.png' : 'page-where.png', narrow ? 'dark' : 'light');
        });
      if (!narrow && pictures) {
        await page.locator('.ops button[aria-label*="attn_q,"]').first().click();
        await page.getByText(/kernels for it that were not taken/).click();
        await page.getByRole('region', { name: 'Ops by layer' }).screenshot({ path: join(pictures, 'page-ops.png'), animations: 'disabled' });
      }
      await inBothColours(page);
    }, { width, height });

  await check('nothing moves for whoever wants less motion', url, async (page) => {
    await page.goto(`${url}/#/where`);
    await page.getByText('waiting for work').waitFor();
    const moving = await page.evaluate(() => [...document.querySelectorAll('*')].filter((el) => { const s = getComputedStyle(el); return s.animationName !== 'none' || parseFloat(s.transitionDuration) > 0; }).length);
    assert.equal(moving, 0);
  }, { reducedMotion: 'reduce' });
}
